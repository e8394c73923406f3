"""What a query keeps, and for how long."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.check.facts import Facts
from tailrace.check.formatting import duration_in_words
from tailrace.contract.findings import Finding, note, warning

IDLE_AFTER_KEY = "spark.tailrace.watermark.idleAfter"


def unbounded(facts: Facts) -> Iterator[Finding]:
    for kept in facts.described.state:
        if kept.bounded:
            continue
        if kept.name == "dropDuplicates":
            yield warning(
                "TAILRACE_UNBOUNDED_STATE",
                "dropDuplicates",
                "it keeps every key that it has ever seen, so its state and each commit grow without bound.",
                'add the event time to the keys: .withWatermark("timestamp", "10 minutes").dropDuplicates(["id", '
                '"timestamp"]); state older than the watermark is then dropped. Or forget keys by the clock: '
                'tailrace.drop_duplicates(rows, ["id"], ttl="10 minutes").',
                kept.line,
            )
        elif kept.name == "join":
            yield warning(
                "TAILRACE_UNBOUNDED_STATE",
                "join",
                "nothing limits how long a row of one stream can match one of the other, so every row of at least one "
                "side is kept forever.",
                "give both sides a watermark, and the condition a range in time in both directions: "
                'F.expr("a.id = b.id AND b.time BETWEEN a.time AND a.time + INTERVAL 10 MINUTES").',
                kept.line,
            )
        elif kept.name == "session window" or facts.described.windows:
            yield warning(
                "TAILRACE_UNBOUNDED_STATE",
                "window",
                "without a watermark no window is ever closed, so the state of all windows is kept forever.",
                'add .withWatermark("timestamp", "10 minutes") before the groupBy.',
                kept.line,
            )
        else:
            yield note(
                "TAILRACE_STATE_PER_KEY",
                "aggregation",
                "it keeps a row for each key that it has ever seen: fine if keys are few or recur.",
                line=kept.line,
            )


def lateness(facts: Facts) -> Iterator[Finding]:
    """The watermark stands still within an epoch, and an epoch judges by the one before; unless it may move."""
    moves = facts.settings.given(IDLE_AFTER_KEY)
    need_not_wait = "session windows, joins and timers of Python processors need not wait for it"
    exception = f"; {need_not_wait}: {IDLE_AFTER_KEY} is {moves}" if moves else ""
    for watermark in facts.described.watermarks:
        delay, epoch = watermark.delay_ms, facts.epoch_ms
        yield note(
            "TAILRACE_LATENESS",
            f"watermark on {watermark.column}",
            f"the watermark moves at epoch boundaries: a row counts as late after {duration_in_words(delay)} plus up "
            f"to two epochs ({duration_in_words(delay + 2 * epoch)}), and state is kept for as long{exception}.",
            line=watermark.line,
        )
