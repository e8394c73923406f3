"""A processor with a timer: a device that sends nothing for a while is reported, although nothing arrives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor


class AlertAfterSilence(StatefulProcessor):
    """Says "silent" of a device that has sent nothing for so long, and "back" when it sends again."""

    def __init__(self, silence_ms: int) -> None:
        self.silence_ms = silence_ms

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.due = handle.getValueState("due", "at_ms LONG")
        self.silent = handle.getValueState("silent", "is BOOLEAN")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        due = self.due.get()
        if due is not None:
            self.handle.deleteTimer(due[0])
        at_ms = timerValues.getCurrentProcessingTimeInMs() + self.silence_ms
        self.handle.registerTimer(at_ms)
        self.due.update((at_ms,))
        if self.silent.exists():
            self.silent.clear()
            yield Row(device=key[0], alert="back")

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        self.due.clear()
        self.silent.update((True,))
        yield Row(device=key[0], alert="silent")


def alerts(readings: DataFrame, silence_ms: int) -> DataFrame:
    return readings.groupBy("device").transformWithState(
        AlertAfterSilence(silence_ms), "device STRING, alert STRING", "Update", "ProcessingTime"
    )
