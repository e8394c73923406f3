"""The leaderboard's page in a real browser, over a real Redis."""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import Page, expect, sync_playwright

from tailrace import EmbeddedRedis
from tests.helpers.browser import ARGUMENTS, browser_path
from tests.helpers.tree import ROOT

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def address(redis: EmbeddedRedis) -> Iterator[str]:
    spec = importlib.util.spec_from_file_location("leaderboard_page", ROOT / "examples/leaderboard/page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.MonkeyPatch.context() as patch, socket.create_server(("127.0.0.1", 0)) as listener:
        patch.setitem(os.environ, "REDIS_URL", redis.url)
        patch.setitem(os.environ, "REDIS_PASSWORD_FILE", redis.password_file)
        server = uvicorn.Server(uvicorn.Config(module.app, log_level="warning"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def page(address: str) -> Iterator[Page]:
    path = browser_path()
    expect.set_options(timeout=120_000)
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(address)
        yield page
        browser.close()
    # The browser asks for an icon by itself.
    assert [text for text in complaints if "404" not in text] == []


def test_the_top_ten_are_live(page: Page, redis: EmbeddedRedis) -> None:
    redis.execute("DEL", "leaderboard")
    for place in range(12):
        redis.execute("ZADD", "leaderboard", 1000 * (place + 1), f"player-{place}")
    expect(page.locator("li")).to_have_count(10)
    expect(page.locator("li .player").first).to_have_text("player-11")
    expect(page.locator("li .total").first).to_have_text("12,000")
    expect(page.get_by_role("status")).to_have_text("live")
    redis.execute("ZADD", "leaderboard", 50_000, HOSTILE)
    expect(page.locator("li .player").first).to_have_text(HOSTILE)
    expect(page.locator("li .rank").nth(1)).to_have_text("2")
    expect(page.locator("li .player").nth(1)).to_have_text("player-11")
    assert page.locator("img").count() == 0


def test_it_follows_light_and_dark(page: Page) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_it_fits_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
