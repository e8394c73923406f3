"""The dashboard's page for every user: in the dark, on a phone, by keyboard, by ear; and names that are markup."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from playwright.sync_api import Page, expect

from tailrace.contract.snapshot import Application, Snapshot
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query
from tests.helpers.waiting import until
from tests.integration.dashboard.visitor import Open, box, painted, section

PHONE = {"width": 360, "height": 760}


SCRIPT = "<img src=x onerror=\"document.title='broken in'\"><b>bold</b>"


def test_html_in_names_stays_text(open_page: Open) -> None:
    query = {**make_query(SCRIPT, status="failed", error=SCRIPT), "run_id": "hostile"}
    query["partitions"][3]["topic"] = SCRIPT
    query["stages"][0].update(operators=[SCRIPT], sources=[SCRIPT])
    query["stages"][1].update(sink=SCRIPT)
    query["state"][0]["operator"] = SCRIPT
    query["findings"] = [{**dict.fromkeys(("code", "title", "detail", "fix", "line"), SCRIPT), "severity": "warning"}]

    class Hostile(SyntheticMonitor):
        def snapshot(self) -> Snapshot:
            figures = super().snapshot()
            application = Application(SCRIPT, SCRIPT, SCRIPT, SCRIPT, SCRIPT)
            executors = (replace(figures.executors[0], id=SCRIPT), *figures.executors[1:])
            return replace(figures, application=application, executors=executors)

    page = open_page(Hostile(query, make_query("other")), path="#" + SCRIPT)
    expect(page.get_by_role("heading", level=2)).to_have_text(SCRIPT)
    for place in ("application", "queries", "title", "findings", "plan", "partitions", "executors", "state"):
        expect(page.locator(f"#{place}")).to_contain_text(SCRIPT)
    assert page.locator("main b, main img, nav img").count() == 0
    expect(page).not_to_have_title("broken in")


def luminance(page: Page, selector: str, style: str) -> float:
    color = page.locator(selector).first.evaluate(f"(element) => getComputedStyle(element).{style}")
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", color)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_light_and_dark(open_page: Open) -> None:
    page = open_page(SyntheticMonitor(make_query("fraud")), color_scheme="light")
    light = painted(page)
    assert luminance(page, "body", "backgroundColor") > 0.9
    assert luminance(page, "body", "color") < 0.2
    page.emulate_media(color_scheme="dark")
    until(lambda: painted(page).keys() != light.keys(), "the heat map has its dark colors")
    assert luminance(page, "body", "backgroundColor") < 0.1
    assert luminance(page, ".card", "backgroundColor") < 0.15
    assert luminance(page, "body", "color") > 0.8


def test_on_a_phone_nothing_is_cut_off(open_page: Open) -> None:
    query = make_query("a_query_with_a_name_that_is_far_too_long_for_a_phone_and_has_no_spaces_at_all", partitions=40)
    query["partitions"][3]["topic"] = "a.topic.with.a.name.that.is.far.too.long.for.a.phone.as.topics.often.have"
    query["stages"][0]["sources"] = [query["partitions"][3]["topic"]]
    query["findings"][0]["detail"] = "x" * 200
    page = open_page(SyntheticMonitor(query, make_query("other")), viewport=PHONE, has_touch=True)
    expect(page.locator("#partitions tbody tr")).to_have_count(30)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    overflowing = page.evaluate(
        """() => [...document.querySelectorAll("main section, main section *, header *, nav *")]
            .filter((element) => element.getClientRects().length && !element.closest(".unseen"))
            .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
            .map((element) => element.outerHTML.slice(0, 100))"""
    )
    assert overflowing == []
    above, below = (box(stage) for stage in page.locator("#plan .stage").all())
    assert above["y"] + above["height"] < below["y"]


def test_the_keyboard_reaches_all_and_a_redraw_does_not_take_the_focus(open_page: Open) -> None:
    page = open_page(SyntheticMonitor(make_query("fraud"), make_query("alerts")))
    reached = []
    for _ in range(5):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
    assert reached[1:4] == ["fraud", "alerts", "timeline"]
    page.get_by_role("link", name="alerts").focus()
    live = page.locator("#live").inner_text()
    expect(page.locator("#live")).not_to_have_text(live)
    assert page.evaluate("document.activeElement.textContent.trim()") == "alerts"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=2)).to_have_text("alerts")


def test_the_page_can_be_heard(page: Page) -> None:
    names = ("Latency over time", "Findings", "Where the time goes", "Plan", "Partitions", "Executors", "State")
    for name in names:
        expect(section(page, name)).to_be_visible()
        expect(page.get_by_role("heading", level=3, name=re.compile(f"^{name}"))).to_be_visible()
    expect(page.get_by_role("group", name="Time span of the figures")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Latency end to end, each second. Latest: p99.9"))).to_be_visible()
    levels = page.evaluate("[...document.querySelectorAll('main :is(h1,h2,h3,h4)')].map((h) => Number(h.tagName[1]))")
    assert all(deeper - level <= 1 for level, deeper in pairwise(levels))
