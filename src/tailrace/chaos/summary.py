"""A page about a long run, in Markdown: rounds by query and fault, what was wrong, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tailrace.chaos import report
from tailrace.chaos.pieces import repeat_command
from tailrace.chaos.result import ChaosResult
from tailrace.loadtest.machine import describe_machine

NAME = "summary.md"
COUNTS = ("sent", "out", "lost", "duplicates", "unknown", "wrong", "out_of_order")
QUERY_HEAD = (
    "query",
    "promise",
    "rounds",
    *(name.replace("_", " ") for name in COUNTS),
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
                *(_count(tally.counts[name]) for name in COUNTS),
                f"{_count(tally.counts['wrong_keys'])} of {_count(tally.counts['keys'])}"
                if tally.counts["keys"] is not None
                else "",
                _count(tally.counts["timer_duplicates"]),
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
        told = [*([piece.failure] if piece.failure else [])]
        told += [f"`{query}`: {', '.join(texts)}" for query, texts in piece.broken().items()]
        lines = "\n".join(f"- {text}" for text in told)
        yield f"Seed {piece.options.seed}:\n\n{lines}\n\n```shell\n{repeat_command(piece.options)}\n```"


def _count(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
