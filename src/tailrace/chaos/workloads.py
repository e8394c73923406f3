"""The queries under test: ordinary PySpark, from one topic to another.

Each output record says in `number` which input record it answers. What a workload must write is in
`expected.EXPECTED`, under the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tailrace.chaos import hard_queries
from tailrace.errors import TailraceError

EXACTLY_ONCE_SINK = "tailrace-kafka"
SINKS = ("kafka", EXACTLY_ONCE_SINK)
POSTGRESQL, REDIS = "postgresql", "redis"
STORES = (POSTGRESQL, REDIS)
# So many records, at the usual rate about three seconds, lie between the two of a pair: often an epoch ends in between.
# No multiple of 2, 3 or 4, so the two are in different partitions.
PARTNER = 301


@dataclass(frozen=True)
class Workload:
    """A query, made of as many readings of the input as it takes."""

    query: Callable[..., DataFrame]
    readings: int = 1
    shuffles: int = 1
    row_field: str = "number"
    """What identifies a row of its output."""
    once: bool = True
    """Whether an exactly-once sink promises each row once. Otherwise only the last record of a key must be right."""
    parts: tuple[str, ...] = ()
    """The names of several queries that write to one topic. The query is given its own."""
    versions: int = 1
    """How many variants of the code there are. If several, the query is given the number of one."""
    compacted: bool = False
    """Whether its output topic is compacted."""
    keyed: bool = False
    """Whether in a store a row replaces the one with the same key."""
    not_in_stores: str = ""
    """Why a store cannot take its output; empty if it can."""


@dataclass(frozen=True)
class QueryName:
    """What runs under which sink, written "workload/sink", or "workload.part/sink" if it is one of several queries."""

    workload: str
    sink: str
    part: str = ""

    @classmethod
    def parse(cls, text: str) -> QueryName:
        name, _, sink = text.partition("/")
        workload, _, part = name.partition(".")
        return cls(workload, sink, part)

    def __str__(self) -> str:
        return f"{self.workload}{'.' * bool(self.part)}{self.part}/{self.sink}"

    @property
    def topic(self) -> str:
        """Its output topic."""
        return f"{self.workload}-{self.sink}"


def doubled(amount: int) -> int:
    return amount * 2


def passes(amount: int) -> bool:
    return amount % 5 != 0


def scored(amount: int) -> int:
    return (amount * 31 + 7) % 101


def stateless(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("amount") % 5 != 0).select("key", "number", "id", (F.col("amount") * 2).alias("doubled"))


def python(rows: DataFrame) -> DataFrame:
    score: Callable[[str], Column] = F.udf(scored, "long")
    return rows.select("key", "number", "id", score("amount").alias("score"))


def aggregation(rows: DataFrame) -> DataFrame:
    """Count and sum per key. Every row gives an update, whose `number` is that row's: the last that was added."""
    return rows.groupBy("key").agg(
        F.last("number").alias("number"), F.count("*").alias("count"), F.sum("amount").alias("sum")
    )


def dedup(rows: DataFrame) -> DataFrame:
    return rows.dropDuplicates(["id"]).select("key", "number", "id")


class RunningTotals(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.totals = handle.getValueState("totals", "count LONG, sum LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            count, total = self.totals.get() or (0, 0)
            count, total = count + 1, total + row.amount
            self.totals.update((count, total))
            yield Row(key=key[0], number=row.number, count=count, sum=total)


def processor(rows: DataFrame) -> DataFrame:
    """What `aggregation` does, in Python."""
    return rows.groupBy("key").transformWithState(
        RunningTotals(), "key STRING, number LONG, count LONG, sum LONG", "Update", "None"
    )


def session(rows: DataFrame) -> DataFrame:
    """What `aggregation` does, as one session for each key, which every row makes longer or leaves as it is."""
    time = F.timestamp_seconds(F.floor(F.col("number") / 1000))
    updates = rows.groupBy(F.session_window(time, "1 day"), "key").agg(
        F.last("number").alias("number"), F.count("*").alias("count"), F.sum("amount").alias("sum")
    )
    return updates.select("key", "number", "count", "sum")


def join(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Each record with one that was sent a while before it."""
    earlier = others.select(F.col("number").alias("partner"), F.col("amount").alias("partners_amount"))
    return rows.join(earlier, F.col("number") - PARTNER == F.col("partner")).select(
        "key", "number", "partner", (F.col("amount") + F.col("partners_amount")).alias("sum")
    )


ONLY_TOPICS = "only a topic can be compacted"
WORKLOADS = {
    "stateless": Workload(stateless, shuffles=0),
    "python": Workload(python, shuffles=0),
    "aggregation": Workload(aggregation, keyed=True),
    "dedup": Workload(dedup, row_field="id"),
    "processor": Workload(processor, keyed=True),
    "session": Workload(session, keyed=True),
    "join": Workload(join, readings=2, not_in_stores="it joins two streams, which the sink refuses"),
    "extremes": Workload(hard_queries.extremes, keyed=True),
    "firsts": Workload(hard_queries.firsts, keyed=True),
    "timers": Workload(hard_queries.timers, once=False),
    "two-shuffles": Workload(hard_queries.two_shuffles, shuffles=2, row_field="id", once=False),
    "two-sources": Workload(hard_queries.two_sources, readings=2, row_field="row"),
    "compacted": Workload(hard_queries.compacted, shuffles=0, once=False, compacted=True, not_in_stores=ONLY_TOPICS),
    "compacted-extremes": Workload(hard_queries.extremes, once=False, compacted=True, not_in_stores=ONLY_TOPICS),
    "shared": Workload(hard_queries.shared, parts=("a", "b")),
    "changing": Workload(
        hard_queries.changing,
        shuffles=0,
        once=False,
        versions=len(hard_queries.PARTS_OF_VERSION),
        not_in_stores="its output topic is changed while it runs",
    ),
}
# What runs unless others are asked for: figures of one release can be compared with those of another.
USUAL = ("stateless", "python", "aggregation", "dedup")


def refuse_not_in_stores(workloads: tuple[str, ...], sinks: tuple[str, ...]) -> None:
    stores = [sink for sink in sinks if sink in STORES]
    refused = {name: why for name in workloads if (why := WORKLOADS[name].not_in_stores)}
    if stores and refused:
        raise TailraceError(
            "TAILRACE_WORKLOAD_NOT_FOR_SINK",
            "; ".join(f"{stores[0]} does not take the query `{name}`: {why}" for name, why in refused.items()) + ".",
            f"omit it, or run it with --sink {EXACTLY_ONCE_SINK}.",
        )


def queries_of(workload: str, sink: str) -> list[str]:
    return [str(QueryName(workload, sink, part)) for part in WORKLOADS[workload].parts or ("",)]


def rows_of(name: QueryName, version: int, read_input: Callable[[], DataFrame]) -> DataFrame:
    """What a query writes."""
    workload = WORKLOADS[name.workload]
    extra = [name.part] if name.part else [version] if workload.versions > 1 else []
    return workload.query(*(read_input() for _ in range(workload.readings)), *extra)


def read(spark: SparkSession, bootstrap_servers: str, topic: str) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(
            F.from_json(F.col("value").cast("string"), "number LONG, id LONG, key STRING, amount LONG").alias("row")
        )
        .select("row.*")
    )


def write(rows: DataFrame, sink: str, options: dict[str, str], checkpoint: str) -> DataStreamWriter:
    """A record of a topic, a row of a table, an entry of a stream and a hash have the same two columns."""
    return (
        rows.select("key", F.to_json(F.struct("*")).alias("value"))
        .writeStream.format(f"tailrace-{sink}" if sink in STORES else sink)
        .options(**options)
        .option("checkpointLocation", checkpoint)
        .outputMode("update")
    )
