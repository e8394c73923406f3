"""The result of a run: the books as a table, the faults as another, all of it as JSON."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tailrace._version import __version__
from tailrace.chaos.ledger import EXAMPLES, Books
from tailrace.chaos.run import ChaosResult, Round
from tailrace.harness.machine import describe_machine


def books_table(result: ChaosResult) -> Table:
    drawn = Table(title="The books", title_justify="left")
    for column in ("query", "sink"):
        drawn.add_column(column, no_wrap=True)
    for column in (
        "sent",
        "due",
        "out",
        "lost",
        "twice",
        "unknown",
        "out of order",
        "wrong",
        "totals right",
        "recovered, s",
    ):
        drawn.add_column(column, justify="right")
    drawn.add_column("promise kept")
    broken = result.broken()
    for query, books in result.books.items():
        workload, _, sink = query.partition("/")
        promise = result.options.promise_of(query).value
        verdict = f"[red]no[/] ({promise})" if query in broken else f"[green]yes[/] ({promise})"
        drawn.add_row(workload, sink or "its own", *_figures(books), _recovery(result, query), verdict)
    return drawn


def _figures(books: Books) -> list[str]:
    late = "" if books.out_of_order is None else f"{len(books.out_of_order):,}"
    totals = "" if books.keys is None else f"{books.keys - len(books.wrong_keys)} of {books.keys}"
    counts = (books.sent, books.due, books.out, len(books.lost), len(books.twice), len(books.unknown))
    return [f"{count:,}" for count in counts] + [late, f"{len(books.wrong):,}", totals]


def _recovery(result: ChaosResult, query: str) -> str:
    times = [each.recovered_s[query] for each in result.rounds]
    return f"{statistics.median(times):.1f} / {max(times):.1f}" if times else ""


def faults_table(result: ChaosResult) -> Table:
    drawn = Table(title="The faults", title_justify="left")
    drawn.add_column("fault", no_wrap=True)
    for column in ("rounds", "queries started again", "stuck", "recovered, s: median", "longest"):
        drawn.add_column(column, justify="right")
    for name, rounds in _by_fault(result).items():
        slowest = [each.slowest_s for each in rounds]
        ended, stuck = sum(each.ended for each in rounds), sum(each.stuck for each in rounds)
        longest, median = f"{max(slowest):.1f}", f"{statistics.median(slowest):.1f}"
        drawn.add_row(name, str(len(rounds)), str(ended), str(stuck), median, longest)
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
        f"epochs of {options.epoch_s} s, all queries in one driver. Recovered: from the fault's end, for a kill from "
        "the kill, until new rows came from every partition; of a query median / longest, of a fault its slowest query."
        + (f" Start of a driver, median{start}." if start else "")
    )


def show(result: ChaosResult, console: Console) -> None:
    console.print()
    console.print(books_table(result))
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
        "balanced": not broken,
        "queries": {query: _books_dict(result, query) | {"broken": broken.get(query, [])} for query in result.books},
        "rounds": [_round_dict(each) for each in result.rounds],
        "left_out": result.left_out,
        "start_s": {step: round(seconds, 2) for step, seconds in result.median_steps_s().items()},
        "log": str(result.log),
    }


def _books_dict(result: ChaosResult, query: str) -> dict[str, Any]:
    """Counts, and a few of the rows behind each of them."""
    books = result.books[query]
    fields = dataclasses.asdict(books)
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
        "queries_started_again": done.ended,
        "stuck": done.stuck,
    }
