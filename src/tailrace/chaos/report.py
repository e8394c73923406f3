"""The result of a run: deliveries as a table, faults as another, all of it as JSON."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tailrace._version import __version__
from tailrace.chaos.delivery import EXAMPLES
from tailrace.chaos.run import ChaosResult, Round
from tailrace.loadtest.machine import describe_machine

# What is counted in each round, and its heading.
COUNTED = {"ended": "queries ended", "driver_ended": "drivers ended", "stuck": "stuck"}


def delivery_tables(result: ChaosResult) -> list[Table]:
    """One for each sink, with a column for each query: it fits a narrow terminal."""
    by_sink: dict[str, list[str]] = {}
    for query in result.deliveries:
        by_sink.setdefault(query.partition("/")[2], []).append(query)
    return [_delivery_table(result, sink, queries) for sink, queries in by_sink.items()]


def _delivery_table(result: ChaosResult, sink: str, queries: list[str]) -> Table:
    promise = result.options.promise_of(queries[0])
    drawn = Table(title=f"{sink or 'Your query'}, {promise.value}", title_justify="left")
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
    delivery = result.deliveries[query]
    times = [each.recovered_s[query] for each in result.rounds]
    return {
        "sent": f"{delivery.sent:,}",
        "due": f"{delivery.due:,}",
        "out": f"{delivery.out:,}",
        "lost": f"{len(delivery.lost):,}",
        "duplicates": f"{len(delivery.duplicates):,}",
        "unknown": f"{len(delivery.unknown):,}",
        "out of order": "" if delivery.out_of_order is None else f"{len(delivery.out_of_order):,}",
        "wrong": f"{len(delivery.wrong):,}",
        "counts went back": "" if delivery.keys is None else f"{delivery.regressions:,}",
        "totals right": ""
        if delivery.keys is None
        else f"{delivery.keys - len(delivery.wrong_keys)} of {delivery.keys}",
        "recovery, s": f"{statistics.median(times):.1f} / {max(times):.1f}" if times else "",
    }


def faults_table(result: ChaosResult) -> Table:
    drawn = Table(title="Faults, and the recovery of the slowest query", title_justify="left")
    drawn.add_column("fault", no_wrap=True)
    for column in ("rounds", *COUNTED.values(), "median, s", "longest, s"):
        drawn.add_column(column, justify="right")
    for name, rounds in _by_fault(result).items():
        slowest = [each.slowest_s for each in rounds]
        counts = (len(rounds), *(sum(getattr(each, what) for each in rounds) for what in COUNTED))
        drawn.add_row(name, *map(str, counts), f"{statistics.median(slowest):.1f}", f"{max(slowest):.1f}")
    return drawn


def _by_fault(result: ChaosResult) -> dict[str, list[Round]]:
    names = sorted({each.planned.fault for each in result.rounds})
    return {name: [each for each in result.rounds if each.planned.fault == name] for name in names}


def method(result: ChaosResult) -> str:
    options = result.options
    steps = result.median_steps_s()
    start = "".join(f", {step} after {seconds:.1f} s" for step, seconds in steps.items())
    return (
        f"{len(result.rounds)} faults of seed {options.seed} in {result.seconds:,.0f} s, {options.rate} records/s, "
        f"epochs of {options.epoch_s} s, all queries in one driver. Recovery: from the end of the fault until new rows "
        "arrive from every partition; median / longest for a query, the slowest query for a fault."
        + (f" Median start of a driver{start}." if start else "")
    )


def show(result: ChaosResult, console: Console) -> None:
    console.print()
    for table in delivery_tables(result):
        console.print(table)
    for query, texts in result.broken().items():
        console.print(f"[red]{escape(query)}[/]: {escape('; '.join(texts))}", soft_wrap=True)
    if result.rounds:
        console.print(faults_table(result))
    console.print(f"[dim]{method(result)}[/]")
    console.print(f"[dim]{describe_machine()}[/]")


def to_dict(result: ChaosResult) -> dict[str, Any]:
    broken = result.broken()
    return {
        "tailrace": __version__,
        "machine": describe_machine(),
        "method": method(result),
        "seed": result.options.seed,
        "seconds": round(result.seconds, 1),
        "guarantees_held": not broken,
        "queries": {
            query: _delivery_dict(result, query) | {"broken": broken.get(query, [])} for query in result.deliveries
        },
        "rounds": [_round_dict(each) for each in result.rounds],
        "unavailable": result.unavailable,
        "start_s": {step: round(seconds, 2) for step, seconds in result.median_steps_s().items()},
        "log": str(result.log),
    }


def _delivery_dict(result: ChaosResult, query: str) -> dict[str, Any]:
    """Counts, and a few of the rows behind each of them."""
    delivery = result.deliveries[query]
    fields = dataclasses.asdict(delivery)
    lists = {name: value for name, value in fields.items() if isinstance(value, list)}
    return {
        "promise": result.options.promise_of(query).value,
        **fields,
        **{name: len(value) for name, value in lists.items()},
        "examples": {name: value[:EXAMPLES] for name, value in lists.items() if value},
    }


def _round_dict(done: Round) -> dict[str, Any]:
    return {
        **dataclasses.asdict(done.planned),
        "recovered_s": {query: round(seconds, 2) for query, seconds in done.recovered_s.items()},
        "steps_s": {step: round(seconds, 2) for step, seconds in done.steps_s.items()},
        "queries_restarted": done.ended,
        "driver_ended": done.driver_ended,
        "stuck": done.stuck,
    }
