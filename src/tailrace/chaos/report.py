"""The result of a run: deliveries as a table, faults as another, all of it as JSON."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tailrace._version import __version__
from tailrace.chaos.pieces import repeat_command
from tailrace.chaos.result import ChaosResult, Round, failure_texts
from tailrace.chaos.workloads import QueryName
from tailrace.contract import notebook
from tailrace.loadtest.machine import describe_machine

# What is counted in each round, and its heading.
COUNTED = {"ended": "queries ended", "driver_ended": "drivers ended", "stuck": "stuck"}
# So many queries fit side by side into a narrow terminal.
COLUMNS_OF_A_TABLE = 4


def delivery_tables(result: ChaosResult) -> list[Table]:
    """With a column for each query of a sink, few enough for a narrow terminal."""
    by_promise: dict[tuple[str, str], list[str]] = {}
    for query, tally in result.queries.items():
        by_promise.setdefault((QueryName.parse(query).sink, tally.promise), []).append(query)
    return [
        _delivery_table(result, f"{sink or 'Your query'}, {promise}", queries[start : start + COLUMNS_OF_A_TABLE])
        for (sink, promise), queries in by_promise.items()
        for start in range(0, len(queries), COLUMNS_OF_A_TABLE)
    ]


def _delivery_table(result: ChaosResult, title: str, queries: list[str]) -> Table:
    drawn = Table(title=title, title_justify="left")
    drawn.add_column("rows", no_wrap=True)
    for query in queries:
        drawn.add_column(query.partition("/")[0], justify="right", no_wrap=True)
    figures = [_figures(result, query) for query in queries]
    for name in figures[0]:
        drawn.add_row(name, *(column[name] for column in figures))
    drawn.add_section()
    broken = result.broken()
    drawn.add_row("promise kept", *("[red]no[/]" if query in broken else "[green]yes[/]" for query in queries))
    return drawn


def _figures(result: ChaosResult, query: str) -> dict[str, str]:
    counts = result.queries[query].counts
    times = [each.recovered_s[query] for each in result.rounds_of(query)]
    keys = counts.keys
    return {
        "sent": with_commas(counts.sent),
        "due": with_commas(counts.due),
        "out": with_commas(counts.out),
        "lost": with_commas(counts.lost),
        "duplicates": with_commas(counts.duplicates),
        "unknown": with_commas(counts.unknown),
        "out of order": with_commas(counts.out_of_order),
        "wrong": with_commas(counts.wrong),
        "went back": "" if keys is None else with_commas(counts.regressions),
        "last right": "" if keys is None else f"{keys - counts.wrong_keys:,} of {keys:,}",
        "recovery, s": f"{statistics.median(times):.1f} / {max(times):.1f}" if times else "",
    }


def with_commas(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


FAULT_COLUMNS = ("rounds", *COUNTED.values(), "median, s", "most, s", "/min")


def _fault_rows(result: ChaosResult) -> dict[str, tuple[str, ...]]:
    rows = {}
    for name in sorted({each.planned.fault for each in result.rounds}):
        rounds = [each for each in result.rounds if each.planned.fault == name]
        slowest = [each.slowest_s for each in rounds]
        counts = (len(rounds), *(sum(getattr(each, what) for each in rounds) for what in COUNTED))
        took = sum(each.seconds for each in rounds)
        speed = f"{60 * len(rounds) / took:.1f}" if took else ""
        rows[name] = (*map(str, counts), f"{statistics.median(slowest):.1f}", f"{max(slowest):.1f}", speed)
    return rows


def faults_table(result: ChaosResult) -> Table:
    drawn = Table(title="Faults, and the recovery of the slowest query", title_justify="left")
    drawn.add_column("fault", no_wrap=True)
    for column in FAULT_COLUMNS:
        drawn.add_column(column, justify="right")
    for name, row in _fault_rows(result).items():
        drawn.add_row(name, *row)
    return drawn


def faults_markdown(result: ChaosResult) -> str:
    lines = [("fault", *FAULT_COLUMNS), ("---",) * (len(FAULT_COLUMNS) + 1)]
    lines += [(name, *row) for name, row in _fault_rows(result).items()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def method(result: ChaosResult) -> str:
    options, rounds = result.options, result.rounds
    start = "".join(f", {step} after {seconds:.1f} s" for step, seconds in result.median_steps_s().items())
    epochs = sorted({piece.options.epoch_s or 0 for piece in result.pieces})
    split = f" in {len(result.pieces)} pieces" if len(result.pieces) > 1 else ""
    in_a_row = max((each.in_a_row for each in rounds), default=0)
    repeated = sum(each.in_a_row > 1 for each in rounds)
    return (
        f"{len(rounds)} faults of seed {options.seed}{split} in {result.seconds:,.0f} s, {options.rate} records/s, "
        f"epochs of {' and '.join(map(str, epochs))} s, all queries of a piece in one driver. "
        f"{repeated} faults struck before a query had committed since the one before, up to {in_a_row} in a row. "
        "Recovery: from the end of the fault until new rows arrive from every partition; median / longest for a "
        "query, the slowest query for a fault." + (f" Median start of a driver{start}." if start else "")
    )


def show(result: ChaosResult, console: Console) -> None:
    console.print()
    for table in delivery_tables(result):
        console.print(table)
    for tally in result.queries.values():
        if tally.reference:
            console.print(f"[dim]Your query: {escape(tally.reference)}.[/]", soft_wrap=True)
    for text in failure_texts(result):
        console.print(f"[red]failed[/] {escape(text)}", soft_wrap=True)
    if result.rounds:
        console.print(faults_table(result))
    console.print(f"[dim]{method(result)}[/]")
    console.print(f"[dim]{describe_machine()}[/]")


def to_html(result: ChaosResult) -> str:
    """For a notebook: a row for each query, and a row for each fault."""
    broken = result.broken()
    figures = {query: _figures(result, query) for query in result.queries}
    columns = list(next(iter(figures.values()), {}))
    deliveries = [
        (query, result.queries[query].promise, "no" if query in broken else "yes", *row.values())
        for query, row in figures.items()
    ]
    faults = [(name, *row) for name, row in _fault_rows(result).items()]
    return notebook.card(
        f"Chaos, {len(result.rounds)} faults: {'broken' if result.failures else 'every promise kept'}",
        notebook.table(("query", "promise", "kept", *columns), deliveries) if deliveries else "",
        *(notebook.paragraph(f"failed: {text}") for text in failure_texts(result)),
        notebook.table(("fault", *FAULT_COLUMNS), faults) if faults else "",
        notebook.paragraph(method(result)) if result.pieces else "",
    )


def to_dict(result: ChaosResult) -> dict[str, Any]:
    return {
        "tailrace": __version__,
        "machine": describe_machine(),
        "method": method(result),
        "seed": result.options.seed,
        "seconds": round(result.seconds, 1),
        "guarantees_held": not result.failures,
        "queries": {query: tally.to_dict() for query, tally in result.queries.items()},
        "rounds": [_round_dict(each) for each in result.rounds],
        "pieces": [
            {
                "seed": piece.options.seed,
                "rounds": len(piece.rounds),
                "queries": list(piece.tallies),
                "broken": piece.broken(),
                "failure": piece.failure,
                "repeat": repeat_command(piece.options),
            }
            for piece in result.pieces
        ],
        "unavailable": result.unavailable,
        "start_s": {step: round(seconds, 2) for step, seconds in result.median_steps_s().items()},
        "log": str(result.pieces[-1].log) if result.pieces else "",
        "folder": str(result.folder),
    }


def _round_dict(done: Round) -> dict[str, Any]:
    return {
        **dataclasses.asdict(done.planned),
        "recovered_s": {query: round(seconds, 2) for query, seconds in done.recovered_s.items()},
        "steps_s": {step: round(seconds, 2) for step, seconds in done.steps_s.items()},
        "queries_restarted": done.ended,
        "driver_ended": done.driver_ended,
        "stuck": done.stuck,
        "seconds": round(done.seconds, 2),
        "in_a_row": done.in_a_row,
        "at_record": done.at_record,
        "refused": done.refused,
    }
