"""What a user of the page does and sees."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tailrace.contract.snapshot import History, Snapshot
from tailrace.dashboard import Dashboard
from tests.helpers.synthetic_monitor import SyntheticMonitor

DESK = {"width": 1360, "height": 900}


Open = Callable[..., Page]


Box = dict[str, float]


class Understudy:
    """Stands in for one monitor after the other, so that one server does for all tests."""

    shown: SyntheticMonitor

    def snapshot(self) -> Snapshot:
        return self.shown.snapshot()

    def history(self, run_id: str) -> History | None:
        return self.shown.history(run_id)


class Visitor:
    """Opens pages of dashboards, and hears what the browser has to complain about and whom it asks."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._complaints: list[str] = []
        self._hosts: set[str | None] = set()

    def open(self, dashboard: Dashboard, *, path: str = "", clock: bool = False, **context: Any) -> Page:
        self._contexts.append(self._browser.new_context(**{"viewport": DESK, **context}))
        page = self._contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: self._complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self._complaints.append(str(error)))
        page.on("dialog", lambda dialog: self._complaints.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: self._hosts.add(urlsplit(request.url).hostname))
        if clock:
            page.clock.install()
        page.goto(dashboard.url + path)
        expect(page.locator("#live")).to_contain_text("live")
        return page

    def leave(self) -> None:
        for context in self._contexts:
            context.close()
        # A driver that is gone is what some of the tests are about; the browser itself remarks on it.
        expected = ("ERR_CONNECTION_REFUSED", "status of 500")
        assert [text for text in self._complaints if not any(words in text for words in expected)] == []
        assert self._hosts == {"127.0.0.1"}


def texts(locator: Locator) -> list[str]:
    return [" ".join(text.split()) for text in locator.all_inner_texts()]


def words(locator: Locator) -> list[str]:
    """The texts of drawn elements, which have no layout of lines."""
    return [" ".join(text.split()) for text in locator.all_text_contents()]


def box(locator: Locator) -> Box:
    place = locator.bounding_box()
    assert place is not None, "it is not to be seen"
    return {key: float(value) for key, value in place.items()}  # type: ignore[arg-type]


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=re.compile(f"^{name}"))


def figure(page: Page, name: str) -> Locator:
    return page.locator("#headline .figure").filter(has=page.locator("dt", has_text=re.compile(f"^{re.escape(name)}$")))


def painted(page: Page) -> dict[str, int]:
    """How many cells of the heat map's canvas have which color."""
    colors: dict[str, int] = page.evaluate(
        """() => {
            const canvas = document.querySelector("#heatmap canvas");
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            const found = {};
            for (let i = 0; i < data.length; i += 4 * 7) {
                if (data[i + 3] === 0) continue;
                const color = [...data.slice(i, i + 3)].join();
                found[color] = (found[color] ?? 0) + 1;
            }
            return found;
        }"""
    )
    return colors
