from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ..runtimes.spark import answers, parsed

OUTPUT = "key STRING, number LONG, intended_ns LONG, count LONG"


class Count(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.count = handle.getValueState("count", "count LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        held = self.count.get()
        count = held[0] if held else 0
        for row in rows:
            count += 1
            yield Row(key=key[0], number=row.number, intended_ns=row.intended_ns, count=count)
        self.count.update((count,))

    def close(self) -> None:
        pass


def query(rows: DataFrame) -> DataFrame:
    records = parsed(rows).select("key", "number", "intended_ns")
    return answers(records.groupBy("key").transformWithState(Count(), OUTPUT, "Update", "None"), "key", "count")
