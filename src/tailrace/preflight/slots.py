"""The task slots of an application: what its master offers, and which running queries hold them."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tailrace._slots import offered_slots


@dataclass(frozen=True)
class Slots:
    master: str
    offered: int | None
    """None if it is not known yet."""
    held: dict[str, int] = field(default_factory=dict)
    """By the real-time queries that run now; they keep them between two rows as well."""

    @property
    def free(self) -> int | None:
        return None if self.offered is None else self.offered - sum(self.held.values())


_holders: list[tuple[StreamingQuery, int]] = []


def remember(query: StreamingQuery, slots: int | None) -> None:
    """A real-time query has been started with so many slots."""
    _forget_the_ended()
    if slots is not None:
        _holders.append((query, slots))


def slots_of(spark: SparkSession) -> Slots:
    _forget_the_ended()
    held = {query.name or str(query.id): slots for query, slots in _holders}
    return Slots(str(spark.sparkContext.master), offered_slots(spark), held)


def _forget_the_ended() -> None:
    _holders[:] = [(query, slots) for query, slots in _holders if _is_active(query)]


def _is_active(query: StreamingQuery) -> bool:
    try:
        return bool(query.isActive)
    except Exception:
        # Its Spark has ended.
        return False
