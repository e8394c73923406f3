"""The charts of the dashboard's page: curves, heat map, epoch boundaries, and what a pointer reads out."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tailrace.contract.codec import decode, encode
from tailrace.contract.snapshot import History
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query
from tests.helpers.waiting import until
from tests.integration.dashboard.visitor import Open, box, painted, words


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

    until(a_second_later, "the curve has moved on")


def test_ends_of_epochs_are_marked_on_both_charts(page: Page) -> None:
    for chart in ("#curves", "#heatmap"):
        marks = page.locator(f"{chart} .boundary")
        assert 9 <= marks.count() <= 11
        said = r"Epoch \d+ ended at \d\d:\d\d:00; nothing was read for \d+ ms: finish \d+ ms, .*, launch \d+ ms"
        why = "; not overlapped: dropDuplicates does not overlap epochs"
        assert re.fullmatch(said + why, words(marks.last.locator("title"))[0])


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


def test_the_heat_map_has_many_shades_and_gaps(page: Page) -> None:
    colors = painted(page)
    assert len(colors) > 50
    assert sum(colors.values()) > 5000
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
