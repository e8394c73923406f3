"""The queries of the stateful benchmarks.

All read the same records in the same way, and answer each row with a row that carries its number and time. Queries by
key also keep and write a count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

COUNTED = "key STRING, rows LONG, number LONG, intended_ns LONG"
DELAY = "10 seconds"
MATCH_WITHIN = "INTERVAL 15 SECONDS"
SESSION_GAP = "2 seconds"


class Count(StatefulProcessor):
    """Reads its state once for all rows of a call, as a user would write it for micro-batch."""

    def init(self, handle: Any) -> None:
        self.count = handle.getValueState("count", "rows LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        held = self.count.get()
        count = held[0] if held else 0
        for row in rows:
            count += 1
            yield Row(key=key[0], rows=count, number=row.number, intended_ns=row.intended_ns)
        self.count.update((count,))


class CountOfFrames(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.count = handle.getValueState("count", "rows LONG")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        held = self.count.get()
        count = held[0] if held else 0
        for frame in rows:
            counts = range(count + 1, count + len(frame) + 1)
            count += len(frame)
            columns = {"key": key[0], "rows": counts, "number": frame["number"], "intended_ns": frame["intended_ns"]}
            yield pd.DataFrame(columns)
        self.count.update((count,))


def aggregated(rows: DataFrame) -> DataFrame:
    return _newest(_parsed(rows).groupBy("key"))


def processed(rows: DataFrame) -> DataFrame:
    return _answers(_parsed(rows).groupBy("key").transformWithState(Count(), COUNTED, "Update", "None"))


def processed_in_pandas(rows: DataFrame) -> DataFrame:
    return _answers(_parsed(rows).groupBy("key").transformWithStateInPandas(CountOfFrames(), COUNTED, "Update", "None"))


def joined(left: DataFrame, right: DataFrame) -> DataFrame:
    """Rows with the same number; the time of a match is that of its later row."""
    sides = [
        _timed(rows).select(
            F.col("number").alias(f"{side}_number"),
            F.col("intended_ns").alias(f"{side}_ns"),
            F.col("at").alias(f"{side}_at"),
        )
        for side, rows in (("left", left), ("right", right))
    ]
    marked = [rows.withWatermark(f"{side}_at", DELAY) for side, rows in zip(("left", "right"), sides, strict=True)]
    together = F.expr(
        f"left_number = right_number AND right_at BETWEEN left_at - {MATCH_WITHIN} AND left_at + {MATCH_WITHIN}"
    )
    return _answers(
        marked[0]
        .join(marked[1], together)
        .select(
            F.col("left_number").cast("string").alias("key"),
            F.lit(2).alias("rows"),
            F.col("left_number").alias("number"),
            F.greatest("left_ns", "right_ns").alias("intended_ns"),
        )
    )


def in_sessions(rows: DataFrame) -> DataFrame:
    marked = _timed(rows).withWatermark("at", DELAY)
    return _newest(marked.groupBy("key", F.session_window("at", SESSION_GAP)))


def _parsed(rows: DataFrame) -> DataFrame:
    record = F.from_json(F.col("value").cast("string"), "number LONG, intended_ns LONG")
    return rows.select(F.col("key").cast("string").alias("key"), record.alias("record")).select("key", "record.*")


def _timed(rows: DataFrame) -> DataFrame:
    """Only for queries that need it: a Python processor gets every column there is."""
    return _parsed(rows).withColumn("at", F.timestamp_micros(F.expr("intended_ns div 1000")))


def _newest(groups: Any) -> DataFrame:
    newest = F.max(F.struct("number", "intended_ns")).alias("newest")
    return _answers(groups.agg(F.count("*").alias("rows"), newest).select("key", "rows", "newest.*"))


def _answers(rows: DataFrame) -> DataFrame:
    return rows.select("key", F.to_json(F.struct("rows", "number", "intended_ns")).alias("value"))


@dataclass(frozen=True)
class Kind:
    name: str
    query: Callable[..., DataFrame]
    most: float | None = None
    """The bar: its latency is at most this many times that of the native aggregation."""
    streams: int = 1


NATIVE = Kind("native aggregation", aggregated)
ROWS = Kind("`transformWithState`", processed, most=2.0)
PANDAS = Kind("`transformWithStateInPandas`", processed_in_pandas, most=2.0)
JOIN = Kind("stream-stream join", joined, most=1.5, streams=2)
SESSIONS = Kind("session window", in_sessions, most=1.5)
KINDS = (NATIVE, ROWS, PANDAS, JOIN, SESSIONS)
