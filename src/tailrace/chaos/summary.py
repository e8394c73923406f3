"""A page about a long run, in Markdown: rounds by query and fault, what was wrong, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tailrace.chaos import report
from tailrace.chaos.pieces import repeat_command
from tailrace.chaos.report import with_commas
from tailrace.chaos.result import ChaosResult, DeliveryCounts
from tailrace.loadtest.machine import describe_machine

NAME = "summary.md"
QUERY_HEAD = (
    "query",
    "promise",
    "rounds",
    *("sent", "out", "lost", "duplicates", "unknown", "wrong", "out of order"),
    "wrong last records",
    "timers' duplicates",
    "kept",
)


def write_summary(result: ChaosResult, folder: Path) -> None:
    (folder / NAME).write_text(summary(result), encoding="utf-8")


def summary(result: ChaosResult) -> str:
    return "\n\n".join(_sections(result)) + "\n"


def _sections(result: ChaosResult) -> Iterable[str]:
    yield "# Chaos: summary"
    if not result.rounds:
        yield "No round is done yet."
        return
    yield f"{report.method(result)} {describe_machine()}."
    yield "## By query"
    yield _table(
        QUERY_HEAD,
        (
            (
                f"`{query}`",
                tally.promise,
                len(result.rounds_of(query)),
                *(with_commas(count) for count in _shown(tally.counts)),
                "" if tally.counts.keys is None else f"{tally.counts.wrong_keys:,} of {tally.counts.keys:,}",
                with_commas(tally.counts.timer_duplicates),
                "**no**" if tally.broken else "yes",
            )
            for query, tally in result.queries.items()
        ),
    )
    yield "## By fault"
    yield report.faults_markdown(result)
    yield "## Rounds by query and fault"
    faults = sorted({each.planned.fault for each in result.rounds})
    yield _table(
        ("query", *faults),
        (
            (f"`{query}`", *(sum(r.planned.fault == fault for r in result.rounds_of(query)) for fault in faults))
            for query in result.queries
        ),
    )
    yield "## Failures"
    if not result.failures:
        yield "None."
    for piece in result.failures:
        texts = [*([piece.failure] if piece.failure else [])]
        texts += [f"`{query}`: {', '.join(wrong)}" for query, wrong in piece.broken().items()]
        lines = "\n".join(f"- {text}" for text in texts)
        yield f"Seed {piece.options.seed}:\n\n{lines}\n\n```shell\n{repeat_command(piece.options)}\n```"


def _shown(counts: DeliveryCounts) -> tuple[int | None, ...]:
    found = (counts.lost, counts.duplicates, counts.unknown, counts.wrong, counts.out_of_order)
    return (counts.sent, counts.out, *found)


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
