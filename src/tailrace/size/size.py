"""`tailrace.size`: what a query needs."""

from __future__ import annotations

import dataclasses
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from tailrace.check.check import require_query
from tailrace.check.facts import Query, facts_of
from tailrace.errors import NotReadyError
from tailrace.monitor import latency
from tailrace.size import Load, Sizing, load_of_run, size_of


def size(
    query: Query,
    *,
    rows_per_s: float | None = None,
    row_bytes: float | None = None,
    keys: int | None = None,
    state_bytes_per_key: float | None = None,
    rows_per_s_per_core: float | None = None,
    throughput_rows_per_s: float | None = None,
    throughput_cores: float | None = None,
    boundary_ms: float | None = None,
    utilization: float | None = None,
    cores_per_executor: int | None = None,
    max_recovery_s: float | None = None,
) -> Sizing:
    """Estimate the task slots, cores, executors and memory of a query, and how often it should commit.

        print(tailrace.size(payments, rows_per_s=50_000, throughput_rows_per_s=200_000, keys=1_000_000))

    Everything that is not given is estimated. For a running query, its own figures are used: the rows that arrive, the
    pause at its epoch boundaries, the keys that it keeps.

    :param query: a DataFrame, the writer you would call `start()` on, or a running query.
    :param rows_per_s: rows that arrive per second.
    :param row_bytes: bytes of a row.
    :param keys: keys that the query keeps state for, over all its stages.
    :param state_bytes_per_key: bytes of key and value together; by default the bytes of a row.
    :param rows_per_s_per_core: rows that one core can process per second.
    :param throughput_rows_per_s: rows that the whole query can process per second, measured with a backlog.
    :param throughput_cores: the CPU cores that the throughput was measured on.
    :param boundary_ms: the pause at an epoch boundary.
    :param utilization: the share of the cores that may be busy; 0.5 by default.
    :param cores_per_executor: `spark.executor.cores`, the task slots of an executor; 4 by default.
    :param max_recovery_s: the longest replay after a failure; 60 s by default.
    """
    given = {
        "rows_per_s": rows_per_s,
        "row_bytes": row_bytes,
        "keys": keys,
        "state_bytes_per_key": state_bytes_per_key,
        "rows_per_s_per_core": rows_per_s_per_core,
        "throughput_rows_per_s": throughput_rows_per_s,
        "throughput_cores": throughput_cores,
        "boundary_ms": boundary_ms,
        "utilization": utilization,
        "cores_per_executor": cores_per_executor,
        "max_recovery_s": max_recovery_s,
    }
    require_query(query)
    known = _load_of(query) if isinstance(query, StreamingQuery) else Load()
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return size_of(facts_of(query).shape, dataclasses.replace(known, **changes))


def _load_of(query: StreamingQuery) -> Load:
    try:
        return load_of_run(latency(query).figures)
    except NotReadyError:
        # A micro-batch query is not timed.
        return Load()
