"""Queries whose last record of a key goes wrong if an exactly-once sink drops or repeats the wrong row.

A count or a sum hides such a mistake: each of its updates differs from all others of the key. A maximum does not, nor
does a status. Their keys are short-lived, so no later record of the key covers the mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tailrace.chaos.records import KEYS, LEVEL_NOISE, RUN_OF_A_KEY, SHORT_LIFE

# Shorter than the pause between two runs of a key (see records.py), so timers fire between them.
SILENCE_MS = 600
READING, SILENT, GONE = "reading", "silent", "gone"
# The rows that each version of the changing query makes of a record.
PARTS_OF_VERSION = (("a", "b"), ("b", "c"))


def short_lived(number: Column) -> Column:
    """As `records.short_lived_key`."""
    key = F.floor(number / RUN_OF_A_KEY) % KEYS
    return F.concat(F.lit("k"), key.cast("string"), F.lit("-"), F.floor(number / SHORT_LIFE).cast("string"))


def level(number: Column) -> Column:
    """As `records.level`."""
    return number + number * 7919 % LEVEL_NOISE


def with_levels(rows: DataFrame, *columns: Column) -> DataFrame:
    number = F.col("number")
    return rows.select(short_lived(number).alias("key"), level(number).alias("level"), "number", *columns)


def extremes(rows: DataFrame) -> DataFrame:
    """The highest and the lowest level of each key."""
    return (
        with_levels(rows)
        .groupBy("key")
        .agg(F.last("number").alias("number"), F.max("level").alias("max"), F.min("level").alias("min"))
    )


def firsts(rows: DataFrame) -> DataFrame:
    """The first and the last record of each key."""
    return with_levels(rows).groupBy("key").agg(F.last("number").alias("number"), F.first("number").alias("first"))


def two_shuffles(rows: DataFrame) -> DataFrame:
    """Extremes after deduplication: rows reach the second shuffle from any task of the first.

    Key and level follow from the id: it does not matter which of two records with the same id came first.
    """
    unique = rows.dropDuplicates(["id"])
    identity = F.col("id")
    return (
        unique.select(short_lived(identity).alias("key"), level(identity).alias("level"), "number", "id")
        .groupBy("key")
        .agg(
            F.last("number").alias("number"),
            F.last("id").alias("id"),
            F.max("level").alias("max"),
            F.min("level").alias("min"),
        )
    )


def two_sources(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Extremes over two readings of one topic. A record makes two rows, one from each reading."""
    both = with_levels(rows, (F.col("number") * 2).alias("row")).union(
        with_levels(others, (F.col("number") * 2 + 1).alias("row"))
    )
    return both.groupBy("key").agg(
        F.last("number").alias("number"),
        F.last("row").alias("row"),
        F.max("level").alias("max"),
        F.min("level").alias("min"),
    )


def compacted(rows: DataFrame) -> DataFrame:
    """A projection whose keys come from every input partition, into a compacted topic."""
    return with_levels(rows)


def shared(rows: DataFrame, name: str) -> DataFrame:
    """One of two queries that write to one topic, with the same keys."""
    return extremes(rows).withColumn("by", F.lit(name))


class Silences(StatefulProcessor):
    """Answers each record, and reports a key that has been silent. The last record of a key ends that."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.due = handle.getValueState("due", "at_ms LONG, number LONG")
        self.gone = handle.getValueState("gone", "number LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            due = self.due.get()
            if due is not None:
                self.handle.deleteTimer(due[0])
                self.due.clear()
            if row.is_last:
                self.gone.update((row.number,))
            if self.gone.exists():
                yield Row(key=key[0], number=row.number, status=GONE, due=None)
                continue
            at_ms = timerValues.getCurrentProcessingTimeInMs() + SILENCE_MS
            self.handle.registerTimer(at_ms)
            self.due.update((at_ms, row.number))
            yield Row(key=key[0], number=row.number, status=READING, due=None)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        due = self.due.get()
        self.due.clear()
        number = due[1] if due is not None else None
        yield Row(key=key[0], number=number, status=SILENT, due=expiredTimerInfo.getExpiryTimeInMs())


def timers(rows: DataFrame) -> DataFrame:
    """An alert after silence. When a key has ended, its last record says so, whatever the timers did before."""
    number = F.col("number")
    is_last = (number % SHORT_LIFE >= SHORT_LIFE - KEYS * RUN_OF_A_KEY) & (number % RUN_OF_A_KEY == RUN_OF_A_KEY - 1)
    readings = rows.select(short_lived(number).alias("key"), "number", is_last.alias("is_last"))
    return readings.groupBy("key").transformWithState(
        Silences(), "key STRING, number LONG, status STRING, due LONG", "Update", "ProcessingTime"
    )


def changing(rows: DataFrame, version: int) -> DataFrame:
    """A projection that makes two rows of a record. Each version makes other ones."""
    parts = F.array(*(F.lit(part) for part in PARTS_OF_VERSION[version]))
    return rows.select(short_lived(F.col("number")).alias("key"), "number", F.explode(parts).alias("part"))
