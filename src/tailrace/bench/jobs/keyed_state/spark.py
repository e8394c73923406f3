from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ..runtimes.spark import parsed

ALERT_AFTER_MS = 1000


class Totals(StatefulProcessor):
    """Counts and sums by key, and reports each busy key once a second from a timer."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.totals = handle.getValueState("totals", "count LONG, total LONG, timer BOOLEAN")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        count, total, timer = self.totals.get() or (0, 0, False)
        for row in rows:
            count, total = count + 1, total + row.amount
            yield Row(key=key[0], number=row.number, intended_ns=row.intended_ns, count=count, total=total, timer=False)
        if not timer:
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + ALERT_AFTER_MS)
        self.totals.update((count, total, True))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        count, total, _ = self.totals.get()
        self.totals.update((count, total, False))
        yield Row(key=key[0], number=None, intended_ns=None, count=count, total=total, timer=True)

    def close(self) -> None:
        pass


OUTPUT = "key STRING, number LONG, intended_ns LONG, count LONG, total LONG, timer BOOLEAN"


def query(rows: DataFrame) -> DataFrame:
    records = parsed(rows).select("key", "number", "intended_ns", "amount")
    counted = records.groupBy("key").transformWithState(Totals(), OUTPUT, "Update", "ProcessingTime")
    return counted.select("key", F.to_json(F.struct("*")).alias("value"))
