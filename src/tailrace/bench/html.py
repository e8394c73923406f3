"""The report as one page without scripts or requests, for a desk and for a phone, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree as ET

from tailrace.bench.charts import Series, nines, percentile_chart, time_chart
from tailrace.bench.result import BenchResult, typical
from tailrace.bench.schedule import Cell
from tailrace.bench.systems import SYSTEMS
from tailrace.bench.table import FIGURES, brief, method, with_spread
from tailrace.bench.workloads import WORKLOADS

REPORT = "report.html"
DESK, PHONE = (560.0, 300.0), (330.0, 260.0)


def write(result: BenchResult, folder: Path) -> Path:
    path = folder / REPORT
    path.write_text(page(result), encoding="utf-8")
    return path


def page(result: BenchResult) -> str:
    style = (resources.files(__package__) / "report.css").read_text(encoding="utf-8")
    sections = "".join(_section(result, workload, rate) for workload in result.workloads for rate in result.rates)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tailrace bench, {escape(result.began)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>tailrace bench</h1><p>{escape(result.began)}, {result.took_s / 60:.0f} minutes</p></header>
<main>
<section class="card"><h2>How it was measured</h2><p>{escape(method(result))}</p>
<p>{escape(result.machine)}</p><pre>{escape(result.command)}</pre>{_disturbed(result)}</section>
{sections}{_sustained(result)}{_recoveries(result)}{_systems(result)}
</main>
</body>
</html>
"""


def _section(result: BenchResult, workload: str, rate: int) -> str:
    cells = result.cells(workload, rate)
    measured = [(place, cell) for place, cell in enumerate(cells) if result.runs_of(cell)]
    title = f"{workload}: {WORKLOADS[workload].title}, {rate:,} records/s"
    charts = _charts(result, measured) if measured else ""
    return f"""<section class="card" id="{escape(workload)}-{rate}">
<h2>{escape(title)}</h2>
{_legend(measured)}{charts}
{_table(result, cells)}
{_published(workload)}</section>
"""


def _legend(measured: list[tuple[int, Cell]]) -> str:
    items = "".join(f'<li class="c{place}">{escape(SYSTEMS[cell.system].title)}</li>' for place, cell in measured)
    return f'<ul class="legend">{items}</ul>'


def _charts(result: BenchResult, measured: list[tuple[int, Cell]]) -> str:
    curves, times = [], []
    for place, cell in measured:
        run = typical(result.runs_of(cell))
        name = SYSTEMS[cell.system].title
        curves.append(Series(name, place, tuple((nines(p), ms) for p, ms in run.curve)))
        line = tuple((float(second.at_s), second.p99_ms) for second in run.timeline)
        times.append(Series(name, place, line, marks=run.checkpoints_s))
    drawn = []
    for kind, size in (("desk", DESK), ("phone", PHONE)):
        pictures = percentile_chart(curves, *size), time_chart(times, result.seconds, *size)
        drawn.append(f'<div class="charts {kind}">{"".join(map(_inline, pictures))}</div>')
    note = (
        "Right: p99 of each second; the ticks at the bottom are checkpoints or commits. Of several rounds, the median."
    )
    return f'{"".join(drawn)}<p class="note">{note}</p>'


def _table(result: BenchResult, cells: list[Cell]) -> str:
    names = ("system", *FIGURES, "lost", "dup.", "guarantee")
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = "".join(_row(result, place, cell, len(names)) for place, cell in enumerate(cells))
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(result: BenchResult, place: int, cell: Cell, columns: int) -> str:
    system, runs = SYSTEMS[cell.system], result.runs_of(cell)
    name = f'<th scope="row" class="c{place}">{escape(system.title)}</th>'
    missing = result.missing_of(cell)
    if not runs:
        reason = ("failed: " if missing and missing.failed else "") + (missing.reason if missing else "not run")
        return f'<tr>{name}<td class="reason" colspan="{columns - 1}">{escape(reason)}</td></tr>'
    figures = [with_spread(runs, figure) for figure in FIGURES.values()]
    if any(run.disturbance.is_disturbed for run in runs):
        figures[0] += " *"
    figures += [str(sum(run.lost for run in runs)), str(sum(run.duplicates for run in runs)), system.guarantee]
    return f"<tr>{name}{''.join(f'<td>{escape(text)}</td>' for text in figures)}</tr>"


def _disturbed(result: BenchResult) -> str:
    disturbed = [run for run in result.runs if run.disturbance.is_disturbed]
    if not disturbed:
        return "<p>The machine was quiet in every run.</p>" if result.runs else ""
    worst = max(disturbed, key=lambda run: run.disturbance.foreign_pct + run.disturbance.steal_pct)
    return (
        f'<p class="warning">The machine was disturbed in {len(disturbed)} of {len(result.runs)} runs, marked *; at '
        f"worst {escape(worst.disturbance.text())} of its processor time. Compare their figures with care.</p>"
    )


def _published(workload: str) -> str:
    published = WORKLOADS[workload].published
    if not published:
        return ""
    rows = "".join(
        f"<li>{escape(one.system)}: p50 {_ms(one.p50_ms)}, p99 {_ms(one.p99_ms)} ({escape(one.setting)}; "
        f"{escape(one.source)})</li>"
        for one in published
    )
    return (
        f"<p>Published by others, from another machine, by the definition of the columns (broker):</p><ul>{rows}</ul>"
    )


def _ms(value: float | None) -> str:
    return "unknown" if value is None else f"{brief(value)} ms"


def _sustained(result: BenchResult) -> str:
    rows = [
        (SYSTEMS[one.system].title, one.workload, f"{one.rate:,}" if one.rate else "none", f"{one.limit_ms:g}")
        for one in result.sustained
    ]
    return _extra("Highest rate", ("system", "workload", "records/s", "p99 below, ms"), rows)


def _recoveries(result: BenchResult) -> str:
    names = ("system", "workload", "first new row, s", "caught up, s", "repeated", "lost")
    rows = [
        (
            SYSTEMS[o.system].title,
            o.workload,
            f"{o.first_row_s:.1f}",
            f"{o.caught_up_s:.1f}",
            str(o.repeated),
            str(o.lost),
        )
        for o in result.recoveries
    ]
    return _extra("Recovery from SIGKILL", names, rows)


def _extra(title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<section class="card"><h2>{escape(title)}</h2><div class="scroll">{table}</div></section>'


def _systems(result: BenchResult) -> str:
    rows = ""
    for name in result.systems:
        system = SYSTEMS[name]
        settings = "".join(f"<li>{escape(text)}</li>" for text in system.settings)
        rows += (
            f"<dt>{escape(system.title)} <small>{escape(result.versions.get(name, 'not installed'))}; "
            f"{escape(system.guarantee)}</small></dt><dd><ul>{settings}</ul></dd>"
        )
    return f'<section class="card" id="systems"><h2>Systems and settings</h2><dl>{rows}</dl></section>'


def _inline(svg: ET.Element) -> str:
    return ET.tostring(svg, encoding="unicode")
