"""The report: every cell is in it, nothing is requested from anywhere, and no text breaks out."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path

from rich.console import Console

from tailrace.bench import compare_text, html, markdown, pictures, table
from tailrace.bench.charts import Series, nines, percentile_chart, time_chart
from tailrace.bench.compare import compare
from tailrace.bench.result import BenchResult, Missing
from tailrace.bench.usage import Disturbance
from tests.helpers.bench_results import make_result, make_run


def some_result() -> BenchResult:
    runs = [
        make_run(workload, system, number=number, p50=p50 + number)
        for number in range(2)
        for workload in ("stateless", "keyed-aggregate")
        for system, p50 in (("tailrace", 5.0), ("micro-batch", 300.0))
    ]
    runs.append(make_run("stateless", "loop", p50=1.0, disturbance=Disturbance(steal_pct=9.0, foreign_pct=1.0)))
    missing = [
        Missing("keyed-aggregate", "loop", 200, "it keeps no state", failed=False),
        Missing("stateless", "flink", 200, "<script>alert(1)</script> & more", failed=True),
        Missing("keyed-aggregate", "flink", 200, "it ended", failed=True),
    ]
    return make_result(runs, missing)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_it_requests_nothing_and_runs_nothing() -> None:
    text = html.page(some_result())
    page = Tags(text)
    assert "script" not in page.tags
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert not [value for name, value in page.attributes if name in ("src", "href") or name.startswith("on")]
    assert "url(" not in text
    assert "http" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in text


def test_every_cell_is_there_with_its_reason() -> None:
    text = html.page(some_result())
    assert text.count("<section") == 1 + 2 + 1
    for shown in ("it keeps no state", "failed: it ended", "5.5 [5.0–6.0]", "prefers-color-scheme: dark"):
        assert shown in text
    # Rows of both workloads: measured, refused and failed.
    assert len(re.findall(r'<th scope="row"', text)) == 2 * 4
    assert "disturbed in 1 of 9 runs" in text
    assert "9.0 % stolen" in text
    assert "execution.buffer-timeout.interval=0" in text, "the settings of each system"


def test_charts() -> None:
    line = Series("one", 0, ((nines(0), 2.0), (nines(50), 5.0), (nines(99.9), 80.0)))
    svg = percentile_chart([line], 560, 300)
    texts = [element.text for element in svg.iter("text")]
    assert {"50 %", "99 %", "99.9 %", "1", "10", "100"} <= set(texts)
    assert "99.99 %" not in texts
    times = Series("one", 0, ((0, 2.0), (30, 5.0), (59, 80.0)), marks=(10.0, 20.0))
    svg = time_chart([times], 60, 560, 300)
    assert len([one for one in svg.iter("line") if one.get("class", "").startswith("mark")]) == 2
    for svg in (percentile_chart([], 330, 260), time_chart([], 5, 330, 260)):
        assert svg.get("viewBox") == "0 0 330 260"


def test_points_stay_inside_the_chart() -> None:
    line = Series("one", 0, tuple((nines(p), ms) for p, ms in ((0, 0.001), (50, 1e6), (99.99, 2e6))))
    [drawn] = percentile_chart([line], 560, 300).iter("polyline")
    for point in drawn.get("points", "").split():
        x, y = map(float, point.split(","))
        assert 0 <= x <= 560
        assert 0 <= y <= 300


def test_an_empty_result_is_a_page_too() -> None:
    missing = [Missing("stateless", "flink", 200, "it cannot be installed", failed=True)]
    assert "it cannot be installed" in html.page(make_result([], missing))


def test_pictures(tmp_path: Path) -> None:
    written = pictures.write(some_result(), tmp_path)
    assert [path.name for path in written] == ["stateless-200.png", "keyed-aggregate-200.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_tables_for_a_documentation_page(tmp_path: Path) -> None:
    text = markdown.write(some_result(), tmp_path).read_text()
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(lines) == 2 * (1 + 4)
    # Reasons too fill all columns.
    assert {line.count("|") for line in lines} == {13}
    assert "| Tailrace | 5.5 [5.0–6.0] |" in text
    assert "| Flink | failed: it ended |" in text
    assert "| bare loop \\* | 1.0 |" in text


def printed(show: object, *arguments: object) -> str:
    console = Console(file=io.StringIO(), width=160)
    show(*arguments, console)  # type: ignore[operator]
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table_on_a_terminal() -> None:
    text = printed(table.show, some_result())
    for shown in ("Tailrace", "[5.0–6.0]", "it keeps no state", "failed", "warm-up of 60 s", "2 cores"):
        assert shown in text


def test_a_comparison_on_a_terminal() -> None:
    before = make_result([make_run("stateless", "tailrace", number=n, p50=5) for n in range(3)])
    after = make_result([make_run("stateless", "tailrace", number=n, p50=15) for n in range(3)])
    text = printed(compare_text.show, compare(before, after))
    assert "slower" in text
    assert "p50 ms" in text
