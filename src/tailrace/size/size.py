"""`tailrace.size`: what a query needs."""

from __future__ import annotations

import dataclasses
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from tailrace.check.check import require_query
from tailrace.check.facts import Query, facts_of
from tailrace.errors import NotReadyError
from tailrace.monitor import latency
from tailrace.size import Load, Sizing, bad_size, load_of_run, size_of


def size(query: Query, **load: Any) -> Sizing:
    """Task slots, cores, executors and memory for a query, and how often it should commit.

    Takes a DataFrame, what `start()` would be called on, or a query that runs; of the last one also what it shows of
    itself: how much arrives, how long its boundaries are, how many keys it keeps.

        print(tailrace.size(payments, rows_per_s=50_000, throughput_rows_per_s=200_000, keys=1_000_000))

    :param load: the fields of `tailrace.size.Load`.
    """
    require_query(query)
    unknown = sorted(set(load) - {field.name for field in dataclasses.fields(Load)})
    if unknown:
        raise bad_size(
            f"{', '.join(unknown)} is no figure of a load.",
            f"give some of: {', '.join(field.name for field in dataclasses.fields(Load))}.",
        )
    known = _load_of(query) if isinstance(query, StreamingQuery) else Load()
    return size_of(facts_of(query).shape, dataclasses.replace(known, **load))


def _load_of(query: StreamingQuery) -> Load:
    try:
        return load_of_run(latency(query).to_dict())
    except NotReadyError:
        # A micro-batch query is not timed.
        return Load()
