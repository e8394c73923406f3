"""The dashboard's page when queries come, fail and end, and when the driver is gone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tailrace.dashboard import serve
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query
from tests.integration.dashboard.visitor import Open, figure, texts


def test_without_a_query_it_says_so_and_one_that_starts_appears(open_page: Open) -> None:
    monitor = SyntheticMonitor()
    page = open_page(monitor)
    expect(page.get_by_role("heading", name="No real-time query is running yet")).to_be_visible()
    expect(page.locator("main")).to_be_hidden()
    monitor.queries.append(make_query("fraud"))
    expect(page.get_by_role("heading", name="fraud")).to_be_visible()
    expect(page.locator("#nothing")).to_be_hidden()


def test_a_query_that_has_recorded_nothing_yet(open_page: Open) -> None:
    page = open_page(SyntheticMonitor(make_query(None, status="starting", empty=True, findings=[])))
    expect(page.locator(".pill")).to_have_text("starting")
    expect(page.get_by_role("heading", level=2, name="query id-of-un")).to_be_visible()
    expect(figure(page, "p99").locator(".big")).to_have_text("–")
    expect(page.locator("#curves")).to_contain_text("No rows yet")
    expect(page.locator("#findings")).to_have_text("Nothing stands out.")
    assert "NaN" not in page.locator("body").inner_text()
    assert "undefined" not in page.locator("body").inner_text()
    assert "null" not in page.locator("body").inner_text()


def test_a_failed_query_shows_its_error(open_page: Open) -> None:
    page = open_page(SyntheticMonitor(make_query("fraud", status="failed", error="SparkException: boom\n\tat x.y")))
    expect(page.locator(".pill")).to_have_text("failed")
    expect(page.get_by_role("alert").filter(has_text="The query failed")).to_contain_text("SparkException: boom")
    expect(page.locator("#title")).to_contain_text("ended at")


@pytest.mark.parametrize("status", ["lagging", "ended"])
def test_other_statuses(open_page: Open, status: str) -> None:
    page = open_page(SyntheticMonitor(make_query("fraud", status=status)))
    expect(page.locator(".pill")).to_have_text(status)
    expect(page).to_have_title(f"fraud: {status} · Tailrace")


def test_several_queries_are_tabs_and_the_address_keeps_the_choice(open_page: Open) -> None:
    before = {**make_query("fraud", status="failed", error="x", ran_s=9000), "run_id": "run-before"}
    lagging = make_query("slow & steady?", status="lagging")
    page = open_page(SyntheticMonitor(before, make_query("fraud"), lagging))
    tabs = page.get_by_role("navigation", name="Queries").get_by_role("link")
    assert texts(tabs) == ["fraud failed", "fraud", "slow & steady? lagging"]
    expect(page.locator(".pill")).to_have_text("ready")
    tabs.nth(2).click()
    expect(page.get_by_role("heading", level=2)).to_have_text("slow & steady?")
    expect(page.locator("#curves .curve.p50")).to_have_attribute("d", re.compile("L"))
    page.reload()
    expect(page.get_by_role("heading", level=2)).to_have_text("slow & steady?")
    expect(tabs.nth(2)).to_have_attribute("aria-current", "page")
    tabs.nth(0).click()
    expect(page.locator(".pill")).to_have_text("failed")
    page.goto(page.url.partition("#")[0] + "#%E0%A4%A")
    expect(page.locator(".pill")).to_have_text("ready")


def test_a_driver_that_is_gone_is_told_and_its_return_too(open_page: Open) -> None:
    monitor = SyntheticMonitor(make_query("fraud"))
    dashboard = serve(monitor)
    page = open_page(dashboard)
    expect(page.locator("#connection")).to_be_hidden()
    dashboard.stop()
    expect(page.get_by_role("alert")).to_have_text(re.compile(r"Connection lost, last figures from \d\d:\d\d:\d\d\b"))
    expect(page.locator("#live")).to_have_text("not live")
    expect(figure(page, "p99").locator(".big")).to_have_text("49ms")
    with serve(monitor, port=dashboard.port):
        expect(page.locator("#connection")).to_be_hidden()
        expect(page.locator("#live")).to_contain_text("live ")


@pytest.mark.parametrize("what", ["snapshot", "history"])
def test_an_answer_that_was_cut_off_is_a_lost_connection(open_page: Open, what: str) -> None:
    page = open_page(SyntheticMonitor(make_query("fraud")))
    page.route(f"**/{what}", lambda route: route.fulfill(status=200, content_type="application/json", body='{"at": ['))
    expect(page.get_by_role("alert")).to_contain_text("Connection lost, last figures from")
    page.unroute(f"**/{what}")
    expect(page.locator("#connection")).to_be_hidden()


def test_a_monitor_that_fails_is_told_with_its_reason(open_page: Open) -> None:
    monitor = SyntheticMonitor(make_query("fraud"))
    page = open_page(monitor)
    monitor.failure = RuntimeError("the JVM is gone")
    expect(page.get_by_role("alert")).to_contain_text("RuntimeError: the JVM is gone")
    monitor.failure = None
    expect(page.locator("#connection")).to_be_hidden()


def test_nobody_is_asked_while_nobody_looks(open_page: Open) -> None:
    page = open_page(SyntheticMonitor(make_query("fraud")), clock=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "snapshot" in request.url else None)
    look = """(hidden) => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    with page.expect_request("**/api/snapshot"):
        page.clock.run_for(2000)
    page.evaluate(look, True)
    page.evaluate("fetch('health').then((answer) => answer.text())")  # what was under way is answered before it
    before = len(asked)
    page.clock.run_for(60_000)
    page.evaluate("fetch('health').then((answer) => answer.text())")
    assert len(asked) == before
    with page.expect_request("**/api/snapshot"):
        page.evaluate(look, False)
