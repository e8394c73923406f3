"""The figures on the dashboard's page as its user sees them, in a real browser."""

from __future__ import annotations

import copy
import re
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.synthetic_monitor import SyntheticMonitor, dist, make_query, window
from tests.integration.dashboard.visitor import Open, box, figure, section, texts


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
