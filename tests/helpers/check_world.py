"""What a checked query reads, writes and shares a machine with, and the form of a case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import DoubleType

import tailrace
from tests.helpers.topics import new_topic

Writer = Any


@dataclass
class World:
    """The parts of a case: a session, a broker, fresh topics and a folder."""

    spark: SparkSession
    servers: str
    folder: Path
    topic: str = ""
    output: str = ""

    def __post_init__(self) -> None:
        self.topic = self.topic or new_topic(self.servers, "in")
        self.output = self.output or new_topic(self.servers, "out")

    def load(self, topic: str | None = None, **options: str) -> DataFrame:
        reader = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", topic or self.topic).option("startingOffsets", "earliest")
        for name, value in options.items():
            reader = reader.option(name.replace("_", "."), value)
        return reader.load()

    def rows(self, topic: str | None = None, **options: str) -> DataFrame:
        """`id`, `key`, `value` and `timestamp` of each record."""
        records = self.load(topic, **options).select(F.col("value").cast("string").alias("value"), "timestamp")
        parsed = F.from_json("value", "id LONG, key STRING")
        return records.select(parsed.id.alias("id"), parsed.key.alias("key"), "value", "timestamp")

    def table(self) -> DataFrame:
        return self.spark.createDataFrame([("k0", 1), ("k1", 2)], "key STRING, weight INT")

    def to_kafka(self, query: DataFrame, **options: str) -> Writer:
        columns = query.columns if "value" in query.columns and len(query.columns) == 1 else None
        out = query if columns else query.select(F.to_json(F.struct("*")).alias("value"))
        return self.write(out, "kafka", **{"kafka.bootstrap.servers": self.servers, "topic": self.output, **options})

    def write(
        self, query: DataFrame, format: str, *, mode: str = "update", epoch: str = "60 seconds", **options: str
    ) -> Writer:
        writer: Any = query.writeStream.format(format).outputMode(mode).trigger(realTime=epoch)  # type: ignore[call-overload]
        return writer.options(**{"checkpointLocation": str(self.folder / "checkpoint"), **options})


@dataclass(frozen=True)
class Case:
    name: str
    build: Callable[[World], Writer]
    code: str | None = None
    """The finding that blocks it; nothing if it runs."""
    settings: dict[str, str] = field(default_factory=dict)
    partitions: int = 2
    fails_when_the_epoch_ends: bool = False

    def __str__(self) -> str:
        return self.name


@contextmanager
def settings_of(case: Case, spark: SparkSession) -> Iterator[None]:
    before = {key: str(spark.conf.get(key)) for key in case.settings}
    for key, value in case.settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in case.settings:
            spark.conf.unset(key)
            if key == "spark.sql.shuffle.partitions":
                spark.conf.set(key, before[key])


def blocked(name: str, code: str, build: Callable[[World], Writer], **more: Any) -> Case:
    return Case(name, build, code, **more)


def allowed(name: str, build: Callable[[World], Writer], **more: Any) -> Case:
    return Case(name, build, None, **more)


OPERATOR = "TAILRACE_UNSUPPORTED_OPERATOR"
BY_SPARK = "TAILRACE_REFUSED_BY_SPARK"


def operator(name: str, query: Callable[[World], DataFrame], *, code: str = OPERATOR, **more: Any) -> Case:
    return blocked(name, code, lambda world: world.to_kafka(query(world)), **more)


same: Any = lambda batches: batches  # noqa: E731


class Rows(StatefulProcessor):
    """The id of each row or frame."""

    def init(self, handle: Any) -> None:
        self.state = handle.getValueState("state", "id LONG")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        for row in rows:
            yield Row(id=row.id) if isinstance(row, Row) else row[["id"]]


def words() -> Any:
    class Words:
        def eval(self, value: str) -> Iterator[tuple[str]]:
            for word in value.split():
                yield (word,)

    return F.udtf(Words, returnType="word STRING")


def late(world: World) -> DataFrame:
    return world.rows().withWatermark("timestamp", "10 seconds")


def two_sources(world: World) -> tuple[DataFrame, DataFrame]:
    return world.rows().select("id", "key"), world.rows(new_topic(world.servers, "more")).select("id", "key")


IN_TIME = "l.key = r.key AND r.timestamp BETWEEN l.timestamp AND l.timestamp + INTERVAL 10 SECONDS"


def joined(world: World, condition: str, how: str = "inner") -> DataFrame:
    """Two streams of one topic: each row matches itself."""
    return late(world).alias("l").join(late(world).alias("r"), F.expr(condition), how).select("l.id", "l.key")


def three_streams(world: World) -> DataFrame:
    return joined(world, IN_TIME).join(world.rows().select("id", "key", "value"), ["id", "key"])


def joined_to(world: World, how: str, *, mode: str, sink: str = "kafka", value: Column | None = None) -> Writer:
    value = F.to_json(F.struct("id", "key")) if value is None else value
    rows = joined(world, IN_TIME, how).select(value.alias("value"))
    options = {"kafka.bootstrap.servers": world.servers, "topic": world.output}
    return world.write(rows, sink, mode=mode, **options)


def sessions(rows: DataFrame) -> DataFrame:
    return rows.groupBy(F.session_window("timestamp", "5 seconds"), "key").agg(tailrace.session_status())


def grouped_mean(world: World) -> DataFrame:
    mean: Any = pandas_udf(lambda ids: float(ids.mean()), DoubleType(), PandasUDFType.GROUPED_AGG)
    return world.rows().groupBy("key").agg(mean("id").alias("mean"))
