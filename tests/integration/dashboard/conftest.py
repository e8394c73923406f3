"""A browser, and the dashboard's page open in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tailrace.dashboard import Dashboard, serve
from tests.helpers.browser import ARGUMENTS, browser_path
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query
from tests.integration.dashboard.visitor import Open, Understudy, Visitor


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = browser_path()
    expect.set_options(timeout=120_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Understudy, Dashboard]]:
    understudy = Understudy()
    with serve(understudy) as dashboard:
        yield understudy, dashboard


@pytest.fixture
def open_page(browser: Browser, served: tuple[Understudy, Dashboard]) -> Iterator[Open]:
    """Opens the page of a monitor, or that of a dashboard of the test's own."""
    visitor = Visitor(browser)
    understudy, dashboard = served

    def open_page(shown: SyntheticMonitor | Dashboard, **options: Any) -> Page:
        if isinstance(shown, Dashboard):
            return visitor.open(shown, **options)
        understudy.shown = shown
        return visitor.open(dashboard, **options)

    yield open_page
    visitor.leave()


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """One for all tests that only look. Its clock stands still: it would go on drawing during all other tests."""
    visitor = Visitor(browser)
    with serve(SyntheticMonitor(make_query("fraud"))) as dashboard:
        page = visitor.open(dashboard, clock=True)
        page.clock.pause_at(time.time() + 60)
        yield page
        visitor.leave()
