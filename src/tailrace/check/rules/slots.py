"""Task slots: all stages of a real-time query run at the same time, and hold theirs for as long as it runs."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace._spark.slots import is_local
from tailrace.check.facts import Facts
from tailrace.check.formatting import listed
from tailrace.check.overlap import may_overlap
from tailrace.contract.findings import Finding, blocking, note, warning

PARTITIONS_KEY = "spark.sql.shuffle.partitions"
SPARKS_PARTITIONS = 200


def too_few(facts: Facts) -> Iterator[Finding]:
    needed, free = facts.shape.slots, facts.slots.free
    if needed is None or free is None or needed <= free:
        return
    yield blocking(
        "TAILRACE_TOO_FEW_SLOTS",
        "task slots",
        f"{_needs(facts)} task slots, and {_offers(facts)}. "
        + (
            "Spark would refuse the query after a few seconds."
            if facts.shape.shuffles
            else "Spark would start it anyway, and some partitions would never be read."
        ),
        _change(facts, needed - free),
    )


def default_shuffle_partitions(facts: Facts) -> Iterator[Finding]:
    shuffles = [stage for stage in facts.shape.stages if stage.inputs and stage.tasks == SPARKS_PARTITIONS]
    fits = facts.shape.slots is not None and (facts.slots.free is None or facts.shape.slots <= facts.slots.free)
    if shuffles and fits and facts.settings.given(PARTITIONS_KEY) is None:
        yield warning(
            "TAILRACE_DEFAULT_SHUFFLE_PARTITIONS",
            f"stage {shuffles[0].number}",
            f"{PARTITIONS_KEY} is not set. With its default, which is meant for batches, {SPARKS_PARTITIONS} tasks "
            "hold a slot each.",
            f'spark.conf.set("{PARTITIONS_KEY}", N) with N about the number of cores that the rows keep busy.',
        )


def too_few_to_overlap(facts: Facts) -> Iterator[Finding]:
    """Epochs overlap if their slots are free twice."""
    needed, free = facts.shape.slots, facts.slots.free
    if needed is None or free is None or not needed <= free < 2 * needed:
        return
    if may_overlap(facts):
        yield note(
            "TAILRACE_NO_SLOTS_TO_OVERLAP",
            "task slots",
            f"at an epoch boundary nothing is read for a moment. With {2 * needed} task slots instead of {free}, the "
            "next epoch would take over while the one before still runs.",
            f'.master("local[{(facts.slots.offered or free) + 2 * needed - free}]"): slots may exceed the cores.',
        )


def neighbors(facts: Facts) -> Iterator[Finding]:
    """Spark admits an epoch with a shuffle only if its slots are free at that moment."""
    holders = {holder.query_id for holder in facts.slots.holders}
    others = [name for query_id, name in facts.running.items() if query_id not in holders]
    if others and facts.shape.shuffles and not facts.described.running:
        yield warning(
            "TAILRACE_SHARED_SLOTS",
            "task slots",
            f"{listed([repr(name) for name in others])} of this application uses slots from time to time. If too few "
            "are free when an epoch of this query begins, Spark fails it.",
            "run it in an application of its own.",
        )


def _needs(facts: Facts) -> str:
    stages = facts.shape.stages
    if len(stages) == 1:
        return (
            f"the query reads {facts.shape.slots} partitions, each with a task of its own: it needs {facts.shape.slots}"
        )
    return f"the query's {len(stages)} stages run at the same time and need {facts.shape.arithmetic}"


def _offers(facts: Facts) -> str:
    slots = facts.slots
    if not slots.holders:
        return f"{slots.master} offers {slots.offered}"
    holders = ", ".join(f"{holder.slots} by '{holder.name}'" for holder in slots.holders)
    return f"{slots.master} offers {slots.offered}, of which {slots.held} are held ({holders})"


def _change(facts: Facts, missing: int) -> str:
    slots = facts.slots
    assert slots.offered is not None
    if is_local(slots.master):
        more = f'.master("local[{slots.offered + missing}]"): slots may exceed the cores, most tasks wait for rows'
    else:
        more = f"give the application {missing} more slots (executors, or spark.executor.cores)"
    ways = [more]
    if (fitting := _fitting_partitions(facts)) is not None:
        fewer = f'spark.conf.set("{PARTITIONS_KEY}", {fitting}) before the query, which would fit'
        # The default was not chosen, and hundreds of slots are seldom the answer.
        ways.insert(0 if facts.settings.given(PARTITIONS_KEY) is None else 1, fewer)
    if slots.holders:
        ways.append("stop another query")
    return "; or ".join(ways) + "."


def _fitting_partitions(facts: Facts) -> int | None:
    """How many shuffle partitions would fit, if they are for the user to choose."""
    setting = int(facts.settings.get(PARTITIONS_KEY, str(SPARKS_PARTITIONS)))
    chosen = [stage for stage in facts.shape.stages if stage.inputs and stage.tasks == setting]
    fixed = sum(stage.tasks or 0 for stage in facts.shape.stages if stage not in chosen)
    if not chosen or facts.slots.free is None or _has_state_on_disk(facts):
        return None
    fitting = (facts.slots.free - fixed) // len(chosen)
    return fitting if fitting >= 1 else None


def _has_state_on_disk(facts: Facts) -> bool:
    """Then the number of partitions is the checkpoint's."""
    return bool(facts.checkpoint and facts.checkpoint.operators)
