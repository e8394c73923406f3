"""What a user prints shows itself in a notebook: well-formed, with the same figures, and with every text escaped."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tailrace.chaos import ChaosOptions, ChaosResult
from tailrace.chaos.delivery import Delivery
from tailrace.chaos.result import PieceResult, Round, Tally
from tailrace.chaos.schedule import Planned
from tailrace.check.verdict import Verdict
from tailrace.contract.codec import decode
from tailrace.contract.findings import blocking, note
from tailrace.contract.snapshot import QueryFigures
from tailrace.loadtest import LatencyReport
from tailrace.monitor.histogram import Histogram
from tailrace.monitor.report import Latency
from tests.helpers.synthetic_monitor import make_query
from tests.unit.check.made_up import facts
from tests.unit.size.figures import sized

HOSTILE = "<script>alert('x')</script>&\""
VOID = {"line", "polyline"}


class Shown(HTMLParser):
    """The texts and the tables of a view; fails on what is not well-formed."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(result._repr_html_())
        self.close()
        assert self.open == []
        assert not self.tags & {"script", "img", "iframe", "link", "style"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def latency(**changes: Any) -> Latency:
    query = decode(QueryFigures, {**make_query("payments"), **changes})
    return Latency(query, lambda _figure, _window: Histogram())


def test_a_latency() -> None:
    result = latency()
    shown = Shown(result)
    assert shown.rows[0] == ["ms, last 10 s", "p50", "p90", "p99", "p99.9", "max"]
    found = result.figure("end_to_end")
    assert found is not None
    assert ["end to end", f"{found.p50_ms:,.1f}", f"{found.p90_ms:,.1f}", f"{found.p99_ms:,.1f}"] in [
        row[:4] for row in shown.rows
    ]
    assert result.findings
    assert all(finding.code in shown.text and finding.fix in shown.text for finding in result.findings)


def test_a_latency_of_a_hostile_query() -> None:
    shown = Shown(latency(name=HOSTILE, error=f"{HOSTILE}\nsecond line"))
    assert f"failed: {HOSTILE}" in shown.text
    assert "second line" not in shown.text


def test_a_verdict() -> None:
    findings = (blocking("TAILRACE_A", HOSTILE, HOSTILE, HOSTILE, f"{HOSTILE}:1"), note("TAILRACE_B", "here", "so."))
    shown = Shown(Verdict(HOSTILE, findings, facts().shape, HOSTILE))
    assert shown.text.count(HOSTILE) == 6
    assert "blocked (1 blocking, 1 note)" in shown.text
    assert shown.text.count("→") == 1


def test_a_sizing() -> None:
    result = sized(rows_per_s=50_000, throughput_rows_per_s=200_000, keys=1_000_000)
    shown = Shown(result)
    assert ["task slots", "8 + 20 = 28"] in shown.rows
    assert [row[-1] for row in shown.rows].count("recommended") == 1
    assert Shown(sized(rows_per_s=300_000, throughput_rows_per_s=200_000)).text.count("never") >= 1


def test_a_load_test() -> None:
    latencies = [(number % 10, number * 1000) for number in range(1, 1001)]
    report = LatencyReport.from_latencies(latencies, expected=1004, duplicates=3, started_ns=0, seconds=10)
    shown = Shown(report)
    assert shown.rows[1][-4:] == ["1,000", "1,004", "4", "3"]
    assert shown.rows[1][1] == f"{report.p50_ms:,.1f}"
    assert "svg" in shown.tags
    empty = LatencyReport.from_latencies([], expected=0, duplicates=0, started_ns=0, seconds=0)
    assert "svg" not in Shown(empty).tags


@pytest.mark.parametrize(("duplicates", "verdict"), [([7], "broken"), ([], "every promise kept")])
def test_a_chaos_result(duplicates: list[int], verdict: str) -> None:
    options = ChaosOptions(sinks=("tailrace-kafka",), epoch_s=5)
    rounds = [Round(Planned(1, "driver-kill", 1.0, 0.0, 0.5), dict.fromkeys(options.queries, 20.0), {}, 2, False)]
    delivery = Delivery(1000, 1000, 1000 + len(duplicates), duplicates=duplicates, out_of_order=[])
    tallies = {query: Tally.of(delivery, options.promise_of(query), HOSTILE) for query in options.queries}
    shown = Shown(ChaosResult(options, [PieceResult(options, rounds, tallies, {}, 100.0, Path("chaos.log"))]))
    assert f"Chaos, 1 faults: {verdict}" in shown.text
    by_name = {row[0]: row for row in shown.rows}
    assert set(options.queries) | {"driver-kill"} <= by_name.keys()
    assert {by_name[query][2] for query in options.queries} == {"no" if duplicates else "yes"}


def test_a_chaos_run_without_a_round() -> None:
    assert "0 faults" in Shown(ChaosResult(ChaosOptions(sinks=("kafka",), epoch_s=5))).text
