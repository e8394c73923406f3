"""The task slots of an application: what its master offers, and which running queries hold them."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tailrace._spark.slots import offered_slots


@dataclass(frozen=True)
class Holder:
    """A running real-time query. It keeps its slots even while it waits for rows."""

    query_id: str
    name: str
    slots: int


@dataclass(frozen=True)
class Slots:
    master: str
    offered: int | None
    """None if it is not known yet."""
    holders: tuple[Holder, ...] = ()

    @property
    def held(self) -> int:
        return sum(holder.slots for holder in self.holders)

    @property
    def free(self) -> int | None:
        return None if self.offered is None else self.offered - self.held

    def without(self, query_id: str | None) -> Slots:
        """As if that query had ended."""
        return Slots(self.master, self.offered, tuple(one for one in self.holders if one.query_id != query_id))


_started: dict[str, tuple[StreamingQuery, int]] = {}
_ended: deque[str] = deque(maxlen=3)
_lock = threading.Lock()


def remember(query: StreamingQuery, slots: int | None) -> None:
    """Record that a real-time query was started with this many slots."""
    if slots is not None:
        with _lock:
            _started[str(query.runId)] = (query, slots)


def ended_queries() -> list[str]:
    """The names of the real-time queries that ended last."""
    with _lock:
        return list(_ended)


def slots_of(spark: SparkSession) -> Slots:
    with _lock:
        for run_id in [run_id for run_id, (query, _) in _started.items() if not _is_active(query)]:
            _ended.append(_name_of(_started.pop(run_id)[0]))
        holders = [Holder(str(query.id), query.name or str(query.id), slots) for query, slots in _started.values()]
    return Slots(str(spark.sparkContext.master), offered_slots(spark), tuple(holders))


def _name_of(query: StreamingQuery) -> str:
    try:
        return query.name or str(query.id)
    except Exception:
        return "unknown"


def _is_active(query: StreamingQuery) -> bool:
    try:
        return bool(query.isActive)
    except Exception:
        # Its Spark has ended.
        return False
