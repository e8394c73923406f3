"""Settings that Spark refuses in Real-Time Mode, or that undo its latency.

Adaptive execution is not among them: Spark switches it off for every real-time query.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace._spark.slots import is_local
from tailrace.check.facts import Facts
from tailrace.contract.findings import Finding, blocking, warning

PROVIDER_KEY = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FORMAT_KEY = "spark.sql.streaming.stateStore.checkpointFormatVersion"
JOIN_KEY = "spark.sql.streaming.join.stateFormatVersion"
SORT_KEY = "spark.sql.execution.sortBeforeRepartition"
ALLOWLIST_KEY = "spark.sql.streaming.realTimeMode.allowlistCheck"
SPECULATION_KEY = "spark.speculation"
DYNAMIC_KEY = "spark.dynamicAllocation.enabled"


def refused(facts: Facts) -> Iterator[Finding]:
    provider, version = facts.settings.given(PROVIDER_KEY), facts.settings.given(FORMAT_KEY)
    if provider is not None and provider != ROCKSDB:
        yield _refused(PROVIDER_KEY, provider, "Real-Time Mode keeps state in RocksDB.")
    if version is not None and version.isdigit() and int(version) < 2:
        yield _refused(FORMAT_KEY, version, "Real-Time Mode needs version 2 of the state's checkpoint format.")
    if facts.settings.is_on(SORT_KEY):
        yield _refused(
            SORT_KEY, "true", "repartition(n) would sort all rows of an epoch before it passes on the first."
        )


def _refused(key: str, value: str, why: str) -> Finding:
    return blocking(
        "TAILRACE_SETTING_REFUSED",
        key,
        f"{key} is {value}, and with that Spark starts no real-time query. {why}",
        f'spark.conf.unset("{key}").',
    )


def join_state(facts: Facts) -> Iterator[Finding]:
    """From version 3 on Spark looks for the state's schema under an epoch that Real-Time Mode has not written yet."""
    version = facts.settings.given(JOIN_KEY)
    if version in ("3", "4") and facts.described.stream_joins:
        yield blocking(
            "TAILRACE_SETTING_REFUSED",
            JOIN_KEY,
            f"{JOIN_KEY} is {version}: Spark 4.3 would start the join in Real-Time Mode, and never again from its "
            "checkpoint.",
            f'spark.conf.unset("{JOIN_KEY}").',
        )


def sparks_allowlist(facts: Facts) -> Iterator[Finding]:
    ours = [operator for stage in facts.shape.stages for operator in stage.operators if operator.ours]
    if facts.settings.is_on(ALLOWLIST_KEY) and ours:
        yield blocking(
            "TAILRACE_ALLOWLIST_IN_FORCE",
            ALLOWLIST_KEY,
            f"{ALLOWLIST_KEY} is true, so Spark refuses Tailrace's operators: {ours[0].name}.",
            "remove that setting; Tailrace has its own check.",
            ours[0].line,
        )


def speculation(facts: Facts) -> Iterator[Finding]:
    if facts.settings.is_on(SPECULATION_KEY):
        yield _against_shuffles(
            facts,
            "TAILRACE_SPECULATION",
            SPECULATION_KEY,
            "a real-time task lasts an epoch, and the copy of a slow one takes a slot and writes duplicates.",
            f'.config("{SPECULATION_KEY}", "false") for this application.',
        )


def dynamic_allocation(facts: Facts) -> Iterator[Finding]:
    # On one machine Spark ignores it.
    if facts.settings.is_on(DYNAMIC_KEY) and not is_local(facts.slots.master):
        yield _against_shuffles(
            facts,
            "TAILRACE_DYNAMIC_ALLOCATION",
            DYNAMIC_KEY,
            "executors come and go, and a partition is not read until there is a slot for it.",
            f'.config("{DYNAMIC_KEY}", "false") with a fixed number of executors for this application.',
        )


def _against_shuffles(facts: Facts, code: str, key: str, otherwise: str, change: str) -> Finding:
    if facts.shape.shuffles:
        return blocking(code, key, f"with {key} Spark refuses every job with a streaming shuffle.", change)
    return warning(code, key, otherwise, change)


def pickled_functions(facts: Facts) -> Iterator[Finding]:
    functions = {(function.name, function.line) for function in facts.described.python if function.pickled}
    for name, line in sorted(functions, key=str):
        yield warning(
            "TAILRACE_PICKLED_UDF",
            f"udf {name}",
            f"rows reach the Python function '{name}' pickled, one by one: under load it processes fewer rows per "
            "second than with Arrow.",
            "remove useArrow=False and spark.sql.execution.pythonUDF.arrow.enabled=false, or use a pandas_udf.",
            line,
        )
