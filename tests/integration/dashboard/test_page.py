"""The dashboard's page as its user sees it, in a real browser."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from tailrace.contract.codec import decode, encode
from tailrace.contract.snapshot import Application, History, Snapshot
from tailrace.dashboard import Dashboard, serve
from tests.helpers.browser import ARGUMENTS, browser_path
from tests.helpers.synthetic_monitor import SyntheticMonitor, dist, make_query, window
from tests.helpers.waiting import until

DESK = {"width": 1360, "height": 900}
PHONE = {"width": 360, "height": 760}
SCRIPT = "<img src=x onerror=\"document.title='broken in'\"><b>bold</b>"

Open = Callable[..., Page]
Box = dict[str, float]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = browser_path()
    expect.set_options(timeout=10_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


class Understudy:
    """Stands in for one monitor after the other, so that one server does for all tests."""

    shown: SyntheticMonitor

    def snapshot(self) -> Snapshot:
        return self.shown.snapshot()

    def history(self, run_id: str) -> History | None:
        return self.shown.history(run_id)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Understudy, Dashboard]]:
    understudy = Understudy()
    with serve(understudy) as dashboard:
        yield understudy, dashboard


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


# Headline


def test_the_headline_figures(page: Page) -> None:
    expect(page.get_by_role("heading", name="fraud", level=2)).to_be_visible()
    expect(page.locator(".pill")).to_have_text("ready")
    expect(page.locator("#application")).to_contain_text("payments local[8] · Spark 4.3.0")
    for name, shown in {"p50": "5.6ms", "p99": "49ms", "p99.9": "224ms", "max": "342ms", "lag": "12rows"}.items():
        expect(figure(page, name).locator(".big")).to_have_text(shown)
    expect(figure(page, "rows in").locator(".big")).to_have_text("12,300rows/s")
    expect(figure(page, "rows in").locator(".other")).to_have_text(re.compile(r"out 12,300\srows/s"))
    expect(figure(page, "epoch")).to_contain_text(re.compile(r"\d:\d\d of 1:00"))
    assert float(figure(page, "epoch").get_by_role("progressbar").get_attribute("max") or 0) == 60
    expect(page).to_have_title(re.compile(r"^fraud: p99 49\sms"))


def test_the_window_switch_is_for_all_figures(open_page: Open) -> None:
    query = make_query("fraud")
    query["windows"]["run"] = window(1000, 1400.0)
    query["partitions"][0]["windows"]["run"]["end_to_end"] = dist(900.0)
    page = open_page(SyntheticMonitor(query))
    expect(figure(page, "p50").locator(".big")).to_have_text("5.6ms")
    assert texts(figure(page, "p50").locator(".other")) == ["1 min 5.6 ms", "run 1.4 s"]
    page.get_by_label("Whole run").check()
    expect(figure(page, "p50").locator(".big")).to_have_text("1.4s")
    assert texts(figure(page, "p50").locator(".other")) == ["10 s 5.6 ms", "1 min 5.6 ms"]
    expect(page.locator("#breakdown .value").first).to_have_text(re.compile(r"1\.4\ss"))
    expect(page.locator("#partitions tbody th").first).to_have_text("payments/0")


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (None, "–"), (0, "0 ms"), (0.004, "<0.01 ms"), (0.04, "0.04 ms"), (0.83, "0.8 ms"), (9.96, "10 ms"),
        (12.4, "12 ms"), (999.6, "1.0 s"), (1_432, "1.4 s"), (14_320, "14 s"), (150_000, "3 min"), (-3.0, "−3.0 ms"),
    ],
)  # fmt: skip
def test_latencies_are_written_as_people_do(page: Page, ms: float | None, shown: str) -> None:
    written = page.evaluate("async (ms) => (await import('/assets/format.js')).latency(ms)", ms)
    assert written.replace("\u00a0", " ") == shown


# Charts over time


def test_curves_are_drawn_over_ten_minutes(page: Page) -> None:
    curves = page.locator("#curves path.curve")
    expect(curves).to_have_count(3)
    for curve in curves.all():
        assert box(curve)["width"] > 500
        assert (curve.get_attribute("d") or "").count("L") > 500
    # The higher the percentile, the higher the curve.
    tops = [box(page.locator(f"#curves .curve.{name}"))["y"] for name in ("p999", "p99", "p50")]
    assert tops == sorted(tops)
    assert {"10 ms", "100 ms"} <= set(words(page.locator("#curves .mark")))
    for name, label in zip(("p99.9", "p99", "p50"), words(page.locator("#curves .curve-name")), strict=True):
        assert label.endswith(name)


def test_curves_go_on(page: Page) -> None:
    curve = page.locator("#curves .curve.p50")
    drawn = curve.get_attribute("d")

    def a_second_later() -> bool:
        page.clock.run_for(1000)
        return curve.get_attribute("d") != drawn

    until(a_second_later, "the curve has moved on", within_s=10)


def test_ends_of_epochs_are_marked_on_both_charts(page: Page) -> None:
    for chart in ("#curves", "#heatmap"):
        marks = page.locator(f"{chart} .boundary")
        assert 9 <= marks.count() <= 11
        said = r"Epoch \d+ ended at \d\d:\d\d:00; nothing was read for \d+ ms: finish \d+ ms, .*, launch \d+ ms"
        assert re.fullmatch(said, words(marks.last.locator("title"))[0])


def test_the_pointer_reads_out_a_second_and_the_end_of_an_epoch(page: Page) -> None:
    mark = box(page.locator("#curves .boundary path").nth(4))
    page.mouse.move(mark["x"] + mark["width"] / 2, mark["y"] + 60)
    readout = page.locator("#readout")
    expect(readout).to_be_visible()
    expect(readout).to_contain_text(re.compile(r"nothing was read for \d+\sms"))
    for name in ("max", "p99.9", "p99", "p50", "rows in", "rows out", "lag"):
        expect(readout.locator("dt", has_text=re.compile(f"^{re.escape(name)}$"))).to_be_visible()
    page.mouse.move(mark["x"] + 22, mark["y"] + 60)
    expect(readout).not_to_contain_text("nothing was read")
    page.mouse.move(10, 10)
    expect(readout).to_be_hidden()


def test_the_arrow_keys_read_out_too(page: Page) -> None:
    page.locator("#timeline").focus()
    page.keyboard.press("End")
    when = page.locator("#readout .when")
    latest = when.inner_text()
    page.keyboard.press("ArrowLeft")
    expect(when).not_to_have_text(latest)
    page.keyboard.press("Escape")
    expect(page.locator("#readout")).to_be_hidden()


def painted(page: Page) -> dict[str, int]:
    """How many cells of the heat map's canvas have which colour."""
    colours: dict[str, int] = page.evaluate(
        """() => {
            const canvas = document.querySelector("#heatmap canvas");
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            const found = {};
            for (let i = 0; i < data.length; i += 4 * 7) {
                if (data[i + 3] === 0) continue;
                const colour = [...data.slice(i, i + 3)].join();
                found[colour] = (found[colour] ?? 0) + 1;
            }
            return found;
        }"""
    )
    return colours


def test_the_heat_map_has_many_shades_and_gaps(page: Page) -> None:
    colours = painted(page)
    assert len(colours) > 50
    assert sum(colours.values()) > 5000
    expect(page.locator("#timeline-key")).to_contain_text("1 row")
    assert "16 ms" in words(page.locator("#heatmap .mark"))


def test_a_gap_in_the_records_is_a_gap_in_the_curves(open_page: Open) -> None:
    class Gappy(SyntheticMonitor):
        def history(self, run_id: str) -> History | None:
            curves = encode(super().history(run_id))
            curves["p50_ms"][100:150] = [None] * 50
            for series in (*[curves[key] for key in curves if key != "heatmap"], curves["heatmap"]["counts"]):
                del series[300:350]
            return decode(History, curves)

    page = open_page(Gappy(make_query("fraud")))
    path = page.locator("#curves .curve.p50").get_attribute("d") or ""
    assert path.count("M") == 3
    assert (page.locator("#curves .curve.p99").get_attribute("d") or "").count("M") == 2


# The rest of the page


def test_the_worst_partition_is_on_top(page: Page) -> None:
    rows = page.locator("#partitions tbody tr")
    expect(rows).to_have_count(6)
    assert texts(rows.first.locator("th, td:not(.bar-cell)")) == ["payments/3", "296 ms", "8,760", "1,204"]
    widths = [box(segment)["width"] for segment in rows.first.locator(".segment").all()]
    assert len(widths) == 3
    assert all(width > 10 for width in widths)
    p99s = [float(text.split()[0]) for text in texts(rows.locator("td.value"))]
    assert p99s == sorted(p99s, reverse=True)


def test_of_many_partitions_the_worst_are_shown(open_page: Open) -> None:
    page = open_page(SyntheticMonitor(make_query("wide", partitions=200, hot=177)))
    expect(page.locator("#partitions tbody tr")).to_have_count(30)
    expect(page.locator("#partitions tbody th").first).to_have_text("payments/177")
    expect(page.locator("#partitions")).to_contain_text("and 170 more")
    expect(page.locator(".node.stage").first).to_contain_text("200 tasks")


def test_findings_have_title_detail_fix_and_code(page: Page) -> None:
    findings = section(page, "Findings").get_by_role("listitem")
    expect(findings).to_have_count(3)
    first = findings.first
    expect(first.get_by_role("heading")).to_contain_text("Partition payments/3 gets 71 % of the rows")
    expect(first).to_contain_text("8,761 of 12,340 rows/s in the last 10 s")
    expect(first).to_contain_text("Spread the keys")
    expect(first.locator("code")).to_have_text("TAILRACE_HOT_PARTITION")


def test_the_plan_runs_from_source_to_sink(page: Page) -> None:
    nodes = page.locator("#plan .node")
    kinds = ["source payments", "Stage 0", "Stage 1", "sink kafka"]
    assert [" ".join(text.split()[:2]) for text in texts(nodes)] == kinds
    places = [box(node) for node in nodes.all()]
    assert all(left["x"] + left["width"] < right["x"] for left, right in pairwise(places))
    assert texts(nodes.nth(1).locator("li")) == ["Kafka source", "filter, where", "select, withColumn", "pandas_udf"]
    expect(nodes.nth(1)).to_contain_text("6 tasks")
    expect(nodes.nth(1)).to_contain_text(re.compile(r"Python p99\s*7\.9\sms"))
    assert texts(page.locator(".edge-label")) == ["queue 16 ms", "shuffle 2.6 ms", "ack. 7.3 ms"]
    expect(page.locator("#plan .slowest")).to_have_count(1)
    expect(page.locator("#plan .slowest h4")).to_contain_text("Stage 0")
    for line, (left, right) in zip(page.locator("#plan .edge").all(), pairwise(places), strict=True):
        drawn = box(line)
        assert drawn["x"] == pytest.approx(left["x"] + left["width"], abs=3)
        assert drawn["x"] + drawn["width"] == pytest.approx(right["x"], abs=4)


def test_a_plan_of_several_branches(open_page: Open) -> None:
    query = make_query("union")
    second = copy.deepcopy(query["stages"][0])
    query["stages"].append({**second, "stage": 2, "sources": ["refunds"]})
    query["stages"][1]["inputs"] = [0, 2]
    page = open_page(SyntheticMonitor(query))
    expect(page.locator("#plan .edge")).to_have_count(5)
    first, last, other = (box(page.locator(f'#plan [data-node="stage:{number}"]')) for number in range(3))
    assert first["x"] == other["x"] < last["x"]


def test_where_the_time_goes(page: Page) -> None:
    rows = page.locator("#breakdown .breakdown-row")
    assert texts(rows) == ["p50 5.6 ms", "p99 49 ms"]
    for row in rows.all():
        expect(row.locator(".segment")).to_have_count(3)
    assert texts(page.locator("#breakdown tbody tr"))[:3] == [
        "source queue 1.5 ms 16 ms",
        "processing 2.7 ms 24 ms",
        "acknowledgement 1.4 ms 7.3 ms",
    ]


def test_executors_and_state(page: Page) -> None:
    assert texts(page.locator("#executors tbody tr"))[1] == "1 93 % 3 × 22 ms 23 ms 1.2 GiB / 4.0 GiB"
    assert texts(page.locator("#state tbody tr")) == ["stateStoreSave 184,220 56 MiB 118 ms"]


def test_every_figure_is_explained(page: Page) -> None:
    for name in ("#headline dt", "#breakdown th", "#plan dt", "#executors thead th + th", "#state thead th + th"):
        for term in page.locator(name).all():
            assert term.get_attribute("title"), f"{term.inner_text()} in {name} is not explained"
    page.get_by_text("What the figures mean").click()
    expect(page.locator("#glossary")).to_contain_text("99 of 100 rows were faster than this")


# Queries that come, go and fail


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


# Trust


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


# Connection


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


# All sorts of screens and people


def luminance(page: Page, selector: str, style: str) -> float:
    colour = page.locator(selector).first.evaluate(f"(element) => getComputedStyle(element).{style}")
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_light_and_dark(open_page: Open) -> None:
    page = open_page(SyntheticMonitor(make_query("fraud")), color_scheme="light")
    light = painted(page)
    assert luminance(page, "body", "backgroundColor") > 0.9
    assert luminance(page, "body", "color") < 0.2
    page.emulate_media(color_scheme="dark")
    until(lambda: painted(page).keys() != light.keys(), "the heat map has its dark colours", within_s=5)
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
