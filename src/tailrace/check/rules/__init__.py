"""The rules of a check. A rule is a pure function of the facts and yields its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tailrace.check.facts import Facts
from tailrace.check.rules import advice, checkpoint, operators, settings, sinks, slots, sources, state, trigger
from tailrace.contract.findings import Finding

Rule = Callable[[Facts], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    operators.refused,
    operators.state_before_union,
    operators.refused_by_spark,
    sources.unsupported,
    sources.unreachable,
    sources.same_twice,
    sources.options,
    sources.fetch_waits,
    sources.old_records,
    sinks.unsupported,
    sinks.output_mode,
    sinks.no_row_identity,
    sinks.matches_to_store,
    sinks.output_problems,
    sinks.kafka_columns,
    sinks.lingers,
    sinks.error_policy,
    trigger.below_minimum,
    trigger.boundaries,
    slots.too_few,
    slots.default_shuffle_partitions,
    slots.neighbors,
    slots.too_few_to_overlap,
    checkpoint.missing,
    checkpoint.not_writable,
    checkpoint.in_use,
    checkpoint.name_taken,
    checkpoint.another_query,
    checkpoint.state_format,
    checkpoint.other_state,
    settings.refused,
    settings.join_state,
    settings.sparks_allowlist,
    settings.speculation,
    settings.dynamic_allocation,
    settings.pickled_functions,
    state.unbounded,
    state.lateness,
    advice.guarantee,
    advice.micro_batch_would_do,
)
