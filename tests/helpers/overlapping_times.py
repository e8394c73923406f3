"""What the progress of a query says of event time: which rows each epoch has read, and by which watermarks."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from confluent_kafka import Producer
from pyspark.sql.streaming.query import StreamingQuery

Row = dict[str, Any]


@dataclass(frozen=True)
class Epoch:
    """
    :param read: by topic of one partition, the offset at which the epoch ended.
    :param watermark_s: by which it removed state when it ended.
    """

    number: int
    read: dict[str, int]
    watermark_s: float
    rows_in: int
    rows_out: int
    rows_kept: int
    rows_dropped: int


def epochs_of(query: StreamingQuery) -> list[Epoch]:
    return [_epoch(json.loads(one.json)) for one in query.recentProgress]


def _epoch(progress: dict[str, Any]) -> Epoch:
    (state,) = progress["stateOperators"]
    ends = [source["endOffset"] for source in progress["sources"]]
    return Epoch(
        number=progress["batchId"],
        read={topic: offsets["0"] for end in ends for topic, offsets in end.items()},
        watermark_s=datetime.fromisoformat(progress["eventTime"]["watermark"]).timestamp(),
        rows_in=progress["numInputRows"],
        rows_out=progress["sink"]["numOutputRows"],
        rows_kept=state["numRowsTotal"],
        rows_dropped=state["numRowsDroppedByWatermark"],
    )


def assert_meets(query: StreamingQuery) -> None:
    """Each epoch begins in every source where the one before ended."""
    progress = [json.loads(one.json) for one in query.recentProgress]
    for before, after in pairwise(progress):
        assert after["batchId"] == before["batchId"] + 1
        for one, other in zip(before["sources"], after["sources"], strict=True):
            assert other["startOffset"] == one["endOffset"]


class NumberedLoad:
    """Sends the rows of each number to their topics in the background, until it is stopped."""

    def __init__(self, servers: str, rows_of: Callable[[int], Iterable[tuple[str, Row]]], *, per_second: int = 30):
        self.sent = 0
        self._rows_of = rows_of
        self._pause_s = 1 / per_second
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> NumberedLoad:
        self._thread.start()
        return self

    def __exit__(self, *_failure: object) -> None:
        self.stop()

    def stop(self) -> None:
        """When this returns, everything that was sent is in its topic."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pause_s):
            for topic, row in self._rows_of(self.sent):
                self._producer.produce(topic, key=row["key"].encode(), value=json.dumps(row).encode())
            self._producer.poll(0)
            self.sent += 1
        assert self._producer.flush(20) == 0
