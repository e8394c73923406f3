"""What the query promises, and whether it needs Real-Time Mode at all."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.check.facts import Facts, option
from tailrace.check.formatting import duration_in_words
from tailrace.check.rules.sinks import EXACTLY_ONCE
from tailrace.contract.findings import Finding, note

LONG_WINDOW_MS = 5 * 60_000


def guarantee(facts: Facts) -> Iterator[Finding]:
    if facts.writer is None or not facts.writer.sink.supported:
        return
    yield note("TAILRACE_GUARANTEE", f"sink {facts.writer.sink.name}", guarantee_of(facts))


def guarantee_of(facts: Facts) -> str:
    """What holds after a failure, and after a plain stop."""
    assert facts.writer is not None
    if facts.checkpoint is None:
        return "None across restarts: without a checkpoint location the query starts from scratch each time."
    sink = facts.writer.format
    epoch = duration_in_words(facts.epoch_ms)
    replayed = f"after a failure or a stop the rows since the last commit (up to {epoch}) "
    repeated = {
        "kafka": "are written to Kafka again",
        "foreach": "are given to your function again",
        "console": "are printed again",
    }
    lost = "no row is lost"
    if any(option(source.options, "failOnDataLoss") == "false" for source in facts.described.sources):
        lost = "no row is lost except those that Kafka deleted before they were read (failOnDataLoss is false)"
    if sink in EXACTLY_ONCE:
        return _exactly_once(facts, lost)
    delivery = f"At least once: {lost}; {replayed}{repeated.get(sink, 'are written again')}"
    if facts.stateful:
        return f"{delivery}, with the values that they had then. The state counts each row exactly once."
    return f"{delivery}."


def _exactly_once(facts: Facts, lost: str) -> str:
    if facts.writer is not None and facts.writer.format == "tailrace-postgresql":
        return _exactly_once_in_table(facts, lost)
    if facts.writer is not None and facts.writer.format == "tailrace-redis":
        return _exactly_once_in_redis(facts, lost)
    seen = "" if facts.sink_option("transactionInterval") is None else ", for consumers that read committed records"
    zombies = (
        ""
        if facts.sink_option("transactionInterval") is not None
        else " A machine that is cut off and keeps writing while another run continues from the checkpoint is not "
        "fenced: set transactionInterval for that."
    )
    once = f"Exactly once: {lost}, and no duplicates are written, even after a failure or a stop{seen}."
    if facts.described.stream_joins:
        once += " A match is identified by its content, so functions must be deterministic (docs/guide/guarantees.md)."
    elif facts.stateful:
        once += " What the state has counted stays counted once (an update can be corrected: docs/guide/guarantees.md)."
    return once + zombies


def _exactly_once_in_table(facts: Facts, lost: str) -> str:
    how = "each row replaces the one with its key" if facts.sink_option("keyColumns") else "each row is appended once"
    once = f"Exactly once: {lost}, and {how}, even after a failure or a stop. A newer run shuts out older ones."
    if facts.stateful:
        once += " Updates of a key do not step back (conditions: docs/guide/guarantees.md)."
    return once


def _exactly_once_in_redis(facts: Facts, lost: str) -> str:
    stream = facts.sink_option("structure") == "stream"
    how = "each row is added to its stream once" if stream else "each row replaces what its key or member held"
    once = f"Exactly once: {lost}, and {how}, even after a failure or a stop. A newer run shuts out older ones."
    if facts.stateful:
        once += " Updates of a key do not step back (conditions: docs/guide/guarantees.md)."
    return once + (
        " It holds as far as Redis keeps what it has acknowledged. Rows that Redis itself loses, in a restart or a "
        "failover, are noticed: the query fails."
    )


def micro_batch_would_do(facts: Facts) -> Iterator[Finding]:
    windows = [window.length_ms for window in facts.described.windows]
    decides = facts.described.python or (facts.writer and facts.writer.format == "foreach")
    if windows and min(windows) >= LONG_WINDOW_MS and not decides:
        slots = facts.shape.slots
        yield note(
            "TAILRACE_MICRO_BATCH_WOULD_DO",
            "query",
            f"it gathers rows in windows of {duration_in_words(min(windows))}; a result that is a few seconds old "
            "is as good, and no decision is made row by row. Micro-batch is cheaper: it holds "
            f"{f'none of the {slots} task slots' if slots else 'no task slot'} between two batches.",
            'unless each update matters at once: .trigger(processingTime="10 seconds").',
        )
