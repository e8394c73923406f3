"""`drain`: end a query with everything committed, so the next run continues exactly where this one ended."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tailrace._process.arguments import require_name, require_seconds
from tailrace._spark.plugin import DRAINS_CLASS, is_loaded, jvm_object
from tailrace.contract.drains import Drained
from tailrace.errors import ConfigurationError, DrainError, NothingToDrainError
from tailrace.monitor.live import session_of_this_process

LOOKS_EVERY_S = 0.01


def drain(query: StreamingQuery, *, timeout_s: float = 60.0) -> Drained:
    """Stop a real-time query without a replay: finish its open epoch now, commit it, and stop.

        tailrace.drain(query)

    Everything the query has read is then in the sink and in the checkpoint, so the next run repeats nothing.
    `query.stop()` drops the open epoch instead, and the next run reads it again.

    :param timeout_s: how long the epoch may take to commit. After that a TailraceError is raised and the query keeps
        running. An error is also raised if the query fails in the meantime.
    """
    require_seconds("timeout_s", timeout_s)
    spark = session_of_this_process()
    name = str(query.name or query.id)
    _require_real_time(spark, query, name)
    drains = jvm_object(spark.sparkContext, DRAINS_CLASS)
    run_id = str(query.runId)
    began = time.monotonic()
    drains.ask(run_id)
    try:
        while (next_epoch := drains.heldBefore(run_id)) < 0:
            if not query.isActive:
                raise _failed(query, name)
            if time.monotonic() - began > timeout_s:
                raise _not_drained(name, timeout_s)
            time.sleep(LOOKS_EVERY_S)
        query.stop()
    finally:
        drains.withdraw(run_id)
    committed = next_epoch - 1 if next_epoch > 0 else None
    return Drained(name, run_id, committed, time.monotonic() - began)


def drain_queries(spark: SparkSession, wanted: str | None = None, timeout_s: float = 60.0) -> list[Drained]:
    """Drain the query of that name or id, or all that run in Real-Time Mode, all at the same time."""
    require_seconds("timeout_s", timeout_s)
    require_name("the name of the query", wanted)
    drains = jvm_object(spark.sparkContext, DRAINS_CLASS)
    running = [query for query in spark.streams.active if wanted in (None, query.name, query.id, query.runId)]
    if wanted is None:
        running = [query for query in running if drains.isRealTime(query._jsq)]
    if not running:
        asked = "no query runs in Real-Time Mode" if wanted is None else f"no query '{wanted}' is running"
        known = ", ".join(str(query.name or query.id) for query in spark.streams.active) or "none at all"
        raise NothingToDrainError("TAILRACE_NOTHING_TO_DRAIN", f"{asked}.", f"choose one of those that run: {known}.")
    with ThreadPoolExecutor(len(running)) as threads:
        return list(threads.map(lambda query: drain(query, timeout_s=timeout_s), running))


def _require_real_time(spark: SparkSession, query: StreamingQuery, name: str) -> None:
    if not is_loaded(spark.sparkContext):
        raise ConfigurationError(
            "TAILRACE_SESSION_NOT_CONFIGURED",
            "this Spark session runs without Tailrace's plugin, so its queries cannot be drained.",
            "make the session with tailrace.configure(SparkSession.builder…).getOrCreate().",
        )
    if not query.isActive:
        raise NothingToDrainError(
            "TAILRACE_NOTHING_TO_DRAIN", f"the query {name} is not running.", "drain a query while it runs."
        )
    if not jvm_object(spark.sparkContext, DRAINS_CLASS).isRealTime(query._jsq):
        raise NothingToDrainError(
            "TAILRACE_NOTHING_TO_DRAIN",
            f"the query {name} does not run in Real-Time Mode.",
            "end it with query.processAllAvailable() and query.stop(): a micro-batch is committed when it is done.",
        )


def _failed(query: StreamingQuery, name: str) -> DrainError:
    reason = query.exception()
    said = f": {str(reason).strip().splitlines()[0]}" if reason else ", because something else stopped it."
    return DrainError(
        "TAILRACE_DRAIN_FAILED",
        f"the query {name} ended before its epoch was committed{said}",
        "start it again: it continues from its last commit and replays what came after.",
    )


def _not_drained(name: str, timeout_s: float) -> DrainError:
    return DrainError(
        "TAILRACE_DRAIN_TIMEOUT",
        f"the query {name} had not committed its epoch after {timeout_s:g} s; it keeps running.",
        "give it more time with timeout_s, or stop it with query.stop(): the next run then replays the open epoch.",
    )
