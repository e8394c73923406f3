"""Processors for `transformWithState` whose results show if state or a timer was lost or used twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

COUNTED = "key STRING, n LONG, id LONG"
KEPT = 3


class Counting(StatefulProcessor):
    """Counts the rows of each key, in a value and in a map, and keeps the last of them in a list."""

    def init(self, handle: Any) -> None:
        self.count = handle.getValueState("count", "n LONG")
        self.last_ids = handle.getListState("last_ids", "id LONG")
        self.by_parity = handle.getMapState("parity", "odd LONG", "n LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            n = (self.count.get() or (0,))[0] + 1
            last = [value[0] for value in self.last_ids.get()]
            of_parity = (self.by_parity.getValue((n % 2,)) or (0,))[0] + 1
            # What one variable says, the others say as well.
            assert (len(last), of_parity) == (min(n - 1, KEPT), (n + 1) // 2), (n, last, of_parity)
            self.count.update((n,))
            self.last_ids.put([(kept,) for kept in [*last, row.id][-KEPT:]])
            self.by_parity.updateValue((n % 2,), (of_parity,))
            yield Row(key=key[0], n=n, id=row.id)


class CountingFrames(StatefulProcessor):
    """Counts the rows of each key with `transformWithStateInPandas`."""

    def init(self, handle: Any) -> None:
        self.count = handle.getValueState("count", "n LONG")

    def handleInputRows(self, key: Any, frames: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        for frame in frames:
            before = (self.count.get() or (0,))[0]
            self.count.update((before + len(frame),))
            counts = range(before + 1, before + len(frame) + 1)
            yield pd.DataFrame({"key": key[0], "n": counts, "id": frame["id"].to_numpy()})


class Ticking(StatefulProcessor):
    """From the first row of a key on, a timer that sets the next one; tells when each was due and when it fired."""

    def __init__(self, every_ms: int) -> None:
        self.every_ms = every_ms

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.ticks = handle.getValueState("ticks", "n LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for _ in rows:
            if not self.ticks.exists():
                self.ticks.update((0,))
                self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + self.every_ms)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        n, due = self.ticks.get()[0] + 1, expiredTimerInfo.getExpiryTimeInMs()
        self.ticks.update((n,))
        self.handle.registerTimer(due + self.every_ms)
        yield Row(key=key[0], n=n, due=due, fired=timerValues.getCurrentProcessingTimeInMs())


class CountingForAWhile(StatefulProcessor):
    """Counts the rows of each key until none has come for so long."""

    def __init__(self, ttl_ms: int) -> None:
        self.ttl_ms = ttl_ms

    def init(self, handle: Any) -> None:
        self.count = handle.getValueState("count", "n LONG", self.ttl_ms)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            n = (self.count.get() or (0,))[0] + 1
            self.count.update((n,))
            yield Row(key=key[0], n=n, id=row.id)


class Announced(Counting):
    """Writes a line to a file for each `init`, and fails there if there is another file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def init(self, handle: Any) -> None:
        super().init(handle)
        with (self.folder / "inits").open("a") as inits:
            inits.write(f"{os.getpid()}\n")
        if (self.folder / "fail").exists():
            raise ValueError("init fails")

    @staticmethod
    def worker_pids(folder: Path) -> list[int]:
        """The processes in which a processor was initialized, in this order."""
        inits = folder / "inits"
        return [int(line) for line in inits.read_text().splitlines()] if inits.exists() else []


def counted(rows: DataFrame, processor: StatefulProcessor | None = None, *, time_mode: str = "None") -> DataFrame:
    return rows.groupBy("key").transformWithState(processor or Counting(), COUNTED, "Update", time_mode)
