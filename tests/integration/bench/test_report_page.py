"""The report in a real browser: readable on a desk and on a phone, in light and in dark, and it asks nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tailrace.bench import html
from tailrace.bench.result import Missing
from tests.helpers.bench_results import make_result, make_run
from tests.helpers.browser import ARGUMENTS, browser_path

SYSTEMS = {"tailrace": 5.0, "real-time": 6.0, "micro-batch": 300.0, "flink": 3.0, "quix": 4.0, "loop": 1.2}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = browser_path()
    expect.set_options(timeout=120_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = [make_run("stateless", system, p50=p50) for system, p50 in SYSTEMS.items()]
    missing = [Missing("stateless", "bytewax", 200, "<b>it ended</b>", failed=True)]
    return html.write(make_result(runs, missing), tmp_path_factory.mktemp("report"))


def opened(browser: Browser, report: Path, **context: Any) -> tuple[Page, list[str]]:
    page = browser.new_context(**context).new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: requests.append(str(error)))
    page.goto(report.as_uri())
    return page, requests


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "shown"), [(1360, "desk"), (360, "phone")])
def test_it_is_readable(browser: Browser, report: Path, scheme: str, width: int, shown: str) -> None:
    page, requests = opened(browser, report, viewport={"width": width, "height": 800}, color_scheme=scheme)
    expect(page.locator("h1")).to_have_text("tailrace bench")
    hidden = "phone" if shown == "desk" else "desk"
    expect(page.locator(f".charts.{shown} svg").first).to_be_visible()
    expect(page.locator(f".charts.{hidden} svg").first).to_be_hidden()
    # Wide tables scroll by themselves; the page does not.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(f".charts.{shown} polyline").count() == 2 * len(SYSTEMS)
    text, card = (
        page.evaluate(f"getComputedStyle(document.querySelector('{of}')).{name}")
        for of, name in (("body", "color"), (".card", "backgroundColor"))
    )
    assert (brightness(text) > brightness(card)) == (scheme == "dark")
    assert requests == [report.as_uri()]
    page.context.close()


def test_text_of_a_failure_stays_text(browser: Browser, report: Path) -> None:
    page, _ = opened(browser, report)
    expect(page.locator("td.reason")).to_have_text("failed: <b>it ended</b>")
    page.context.close()


def brightness(color: str) -> int:
    """Of `rgb(1, 2, 3)`."""
    return sum(int(part) for part in color.strip("rgba()").split(",")[:3])
