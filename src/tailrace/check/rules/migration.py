"""What changes for a micro-batch query that becomes a real-time one; asked for with `--from-microbatch`."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.check.facts import Facts
from tailrace.check.formatting import duration_in_words
from tailrace.check.rules.checkpoint import COMMITS_WITH_STATE_IDS, commit_version
from tailrace.contract.findings import Finding, note

CODE = "TAILRACE_FROM_MICRO_BATCH"


def changes(facts: Facts) -> Iterator[Finding]:
    if facts.writer is None or facts.writer.trigger.real_time_ms is not None:
        return
    yield from _trigger(facts)
    yield from _output(facts)
    yield from _duplicates(facts)
    yield from _checkpoint(facts)
    yield from _latency(facts)
    yield from _slots(facts)


def _trigger(facts: Facts) -> Iterator[Finding]:
    assert facts.writer is not None
    interval = facts.writer.trigger.interval_ms
    new = f'.trigger(realTime="{duration_in_words(facts.epoch_ms)}")'
    if interval:
        old = f'.trigger(processingTime="{duration_in_words(interval)}")'
        yield note(CODE, "trigger", f"the one line that changes is {old}.", f"use {new} instead.")
    elif interval is None:
        text = "it ends when its input is read; in Real-Time Mode it would keep running."
        yield note(CODE, "trigger", text, f"{new} instead of its trigger, if that is intended.")
    else:
        yield note(CODE, "trigger", "the one line to add is the trigger.", f"{new}.")


def _output(facts: Facts) -> Iterator[Finding]:
    assert facts.writer is not None
    mode = facts.writer.output_mode
    if mode == "update" or (mode == "append" and facts.described.may_append):
        return
    if not any(state.name == "aggregation" for state in facts.described.state):
        text = f"'{mode}' becomes 'update', and the rows stay the same: nothing is aggregated."
    elif mode == "append":
        text = (
            "'append' becomes 'update': instead of one final row, each change of a group is written at once. Readers "
            "take the last row of each key."
        )
    else:
        text = (
            f"'{mode}' becomes 'update': instead of the whole result with each batch, only the rows that changed are "
            "written. Readers keep the others."
        )
    yield note(CODE, "output mode", text)


def _duplicates(facts: Facts) -> Iterator[Finding]:
    assert facts.writer is not None
    if facts.writer.sink.supported:
        yield note(
            CODE,
            "duplicates",
            f"after a failure micro-batch repeats one batch, Real-Time Mode everything since the last commit, up to "
            f"{duration_in_words(facts.epoch_ms)}, and after a plain stop() as well. Readers of "
            f"'{facts.writer.sink.name}' see more duplicates.",
            "make the reader idempotent by key, or use a shorter epoch.",
        )


def _checkpoint(facts: Facts) -> Iterator[Finding]:
    version = commit_version(facts)
    if version is None:
        return
    if version >= COMMITS_WITH_STATE_IDS:
        yield note(CODE, "checkpoint", "it can be kept: both modes continue from its offsets and state.")
    else:
        yield note(CODE, "checkpoint", "it cannot be kept; TAILRACE_CHECKPOINT_FORMAT explains how to continue.")


def _latency(facts: Facts) -> Iterator[Finding]:
    taken = facts.batch_ms
    if taken:
        now = (
            "now a record waits for the next batch to start and for all of it to finish, and a batch takes "
            f"{taken} ms (median)"
        )
    else:
        now = "now a record waits for the next batch to start and for all of it to finish"
    yield note(
        CODE,
        "latency",
        f"{now}; in Real-Time Mode it takes milliseconds, except at an epoch boundary. Once it runs, "
        "tailrace.latency(query) shows what it is on your machines.",
    )


def _slots(facts: Facts) -> Iterator[Finding]:
    if facts.shape.slots is not None:
        yield note(
            CODE,
            "task slots",
            f"micro-batch shares the available slots. In Real-Time Mode {facts.shape.arithmetic} slots are held for as "
            "long as the query runs.",
        )
