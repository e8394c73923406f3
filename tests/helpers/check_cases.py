"""Small queries, each with the findings a check must report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import DoubleType, LongType

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


BLOCKED_OPERATORS = [
    operator("stream-stream join without equal keys", lambda w: joined(w, "l.id < r.id")),
    operator("left anti join of two streams", lambda w: joined(w, "l.key = r.key", "left_anti")),
    blocked(
        "outer join of two streams, without time",
        BY_SPARK,
        lambda w: w.to_kafka(joined(w, "l.key = r.key", "left_outer")).outputMode("append"),
    ),
    operator(
        "outer join of two streams, then an aggregation",
        lambda w: joined(w, IN_TIME, "left_outer").groupBy("key").count(),
        code=BY_SPARK,
    ),
    operator("join on a range", lambda w: w.rows().join(F.broadcast(w.table()), F.col("weight") < F.col("id"))),
    operator("join that sorts", lambda w: w.rows().join(w.table().hint("merge"), "key")),
    operator("join that hashes partitions", lambda w: w.rows().join(w.table().hint("shuffle_hash"), "key")),
    operator(
        "join with a table too large to broadcast",
        lambda w: w.rows().join(w.table(), "key"),
        settings={"spark.sql.autoBroadcastJoinThreshold": "-1"},
    ),
    operator("join with a table of unknown size", lambda w: w.rows().join(w.table(), "key", "left")),
    operator("cross join", lambda w: w.rows().crossJoin(w.table().select("weight"))),
    operator(
        "a session's status without a session",
        lambda w: w.rows().groupBy("key").agg(tailrace.session_status()),
        code="TAILRACE_STATUS_WITHOUT_SESSION",
    ),
    operator(
        "applyInPandasWithState",
        lambda w: w.rows().groupBy("key").applyInPandasWithState(same, "key STRING", "n LONG", "update", "NoTimeout"),
    ),
    operator(
        "applyInPandas",
        lambda w: w.rows().select("id", "key").groupBy("key").applyInPandas(same, "id LONG, key STRING"),
    ),
    operator("udtf", lambda w: w.rows().lateralJoin(words()(F.col("value").outer()))),
    operator("mapInPandas with barrier", lambda w: w.rows().mapInPandas(same, w.rows().schema, barrier=True)),
    operator("mapInArrow with barrier", lambda w: w.rows().mapInArrow(same, w.rows().schema, barrier=True)),
    operator("repartitionByRange", lambda w: w.rows().repartitionByRange(2, "id")),
    operator("orderBy", lambda w: w.rows().orderBy("id")),
    operator("orderBy after an aggregation", lambda w: w.rows().groupBy("key").count().orderBy("count")),
    operator("sortWithinPartitions", lambda w: w.rows().sortWithinPartitions("id")),
    operator("limit", lambda w: w.rows().limit(5)),
    operator("offset", lambda w: w.rows().offset(5)),
    operator("sample", lambda w: w.rows().sample(0.5)),
    operator("coalesce", lambda w: w.rows().coalesce(1)),
    operator("count distinct", lambda w: w.rows().groupBy("key").agg(F.count_distinct("id")), code=BY_SPARK),
    operator("sum distinct", lambda w: w.rows().groupBy("key").agg(F.sum_distinct("id")), code=BY_SPARK),
    operator("a Python aggregate", grouped_mean, code=BY_SPARK),
    operator(
        "an aggregation before a union",
        lambda w: (
            two_sources(w)[0].groupBy("key").agg(F.max("id").alias("id")).select("id", "key").union(two_sources(w)[1])
        ),
        code="TAILRACE_STATE_BEFORE_UNION",
    ),
    operator(
        "a join before a union",
        lambda w: joined(w, IN_TIME).union(two_sources(w)[1]),
        code="TAILRACE_STATE_BEFORE_UNION",
        settings={"spark.sql.shuffle.partitions": "1"},
        partitions=1,
    ),
    operator(
        "dropDuplicates before a union",
        lambda w: two_sources(w)[0].dropDuplicates(["key"]).union(two_sources(w)[1]),
        code="TAILRACE_STATE_BEFORE_UNION",
    ),
]


def in_sql(text: str) -> Callable[[World], DataFrame]:
    def query(world: World) -> DataFrame:
        world.rows().createOrReplaceTempView("rows_of_the_stream")
        return world.spark.sql(text)

    return query


def alike(world: World) -> Writer:
    """The first side gets no rows, and the second one waits for its end."""
    left, right = (side.select("key", "value").repartition(2, "key") for side in (elsewhere(world), world.rows()))
    return world.write(left.union(right), "kafka", **{"kafka.bootstrap.servers": world.servers, "topic": world.output})


def elsewhere(world: World) -> DataFrame:
    return world.rows(new_topic(world.servers, "elsewhere"))


READ_TWICE = "WITH s AS (SELECT key FROM rows_of_the_stream) SELECT * FROM s UNION ALL SELECT * FROM s"

BLOCKED_OPERATORS += [
    blocked("union of sides that are partitioned alike", OPERATOR, alike),
    blocked(
        "a common table expression read twice",
        "TAILRACE_SAME_SOURCE_TWICE",
        lambda w: w.to_kafka(in_sql(READ_TWICE)(w)).trigger(realTime="5 seconds"),
        fails_when_the_epoch_ends=True,
    ),
]


def itself_twice(world: World) -> DataFrame:
    rows = world.rows()
    return rows.union(rows)


def with_source_option(name: str) -> Callable[[World], Writer]:
    return lambda world: world.to_kafka(world.rows(**{name: "10"}))


BLOCKED_ENDS = [
    operator("the same source twice", itself_twice, code="TAILRACE_SAME_SOURCE_TWICE"),
    blocked(
        "a source of batches",
        "TAILRACE_UNSUPPORTED_SOURCE",
        lambda w: w.to_kafka(w.spark.readStream.format("rate").load()),
    ),
    blocked(
        "files as a source",
        "TAILRACE_UNSUPPORTED_SOURCE",
        lambda w: w.to_kafka(w.spark.readStream.format("text").load(str(w.folder))),
    ),
    blocked("a topic that is not there", "TAILRACE_TOPIC_MISSING", lambda w: w.to_kafka(w.rows("nowhere-to-be-found"))),
    *(
        blocked(f"the option {option}", "TAILRACE_SOURCE_OPTION", with_source_option(option))
        for option in ("maxOffsetsPerTrigger", "minPartitions", "minOffsetsPerTrigger")
    ),
    blocked(
        "foreachBatch",
        "TAILRACE_UNSUPPORTED_SINK",
        lambda w: w.write(w.rows(), "console").foreachBatch(lambda _rows, _epoch: None),
    ),
    blocked("memory", "TAILRACE_UNSUPPORTED_SINK", lambda w: w.write(w.rows(), "memory").queryName("kept")),
    blocked("files", "TAILRACE_UNSUPPORTED_SINK", lambda w: w.write(w.rows(), "parquet", path=str(w.folder / "files"))),
    blocked("noop", "TAILRACE_UNSUPPORTED_SINK", lambda w: w.write(w.rows(), "noop")),
    blocked(
        "Kafka without a value",
        "TAILRACE_KAFKA_SINK",
        lambda w: w.write(w.rows().select("key"), "kafka", **{"kafka.bootstrap.servers": w.servers, "topic": w.output}),
    ),
    blocked(
        "Kafka without a topic",
        "TAILRACE_KAFKA_SINK",
        lambda w: w.write(w.rows().select("value"), "kafka", **{"kafka.bootstrap.servers": w.servers}),
    ),
    blocked(
        "Kafka without brokers",
        "TAILRACE_KAFKA_SINK",
        lambda w: w.write(w.rows().select("value"), "kafka", topic=w.output),
    ),
    blocked(
        "Kafka with a number as value",
        "TAILRACE_KAFKA_SINK",
        lambda w: w.write(
            w.rows().select(F.col("id").alias("value")),
            "kafka",
            **{"kafka.bootstrap.servers": w.servers, "topic": w.output},
        ),
    ),
    blocked("outer join in update", "TAILRACE_OUTPUT_MODE", lambda w: joined_to(w, "left_outer", mode="update")),
    blocked("outer join in complete", "TAILRACE_OUTPUT_MODE", lambda w: joined_to(w, "left_outer", mode="complete")),
    blocked(
        "an outer join, each row once",
        "TAILRACE_NO_ROW_IDENTITY",
        lambda w: joined_to(w, "left_outer", mode="append", sink="tailrace-kafka"),
    ),
    blocked(
        "a join with a random number, each row once",
        "TAILRACE_NOT_DETERMINISTIC",
        lambda w: joined_to(w, "inner", mode="append", sink="tailrace-kafka", value=F.rand().cast("string")),
    ),
    blocked(
        "closed sessions without a watermark",
        "TAILRACE_OUTPUT_MODE",
        lambda w: w.to_kafka(sessions(w.rows())).outputMode("append"),
    ),
    blocked("append", "TAILRACE_OUTPUT_MODE", lambda w: w.to_kafka(w.rows()).outputMode("append")),
    blocked(
        "complete", "TAILRACE_OUTPUT_MODE", lambda w: w.to_kafka(w.rows().groupBy("key").count()).outputMode("complete")
    ),
    blocked(
        "an epoch of a second", "TAILRACE_EPOCH_TOO_SHORT", lambda w: w.to_kafka(w.rows()).trigger(realTime="1 second")
    ),
]


def without_checkpoint(world: World) -> Writer:
    writer: Any = world.rows().select("value").writeStream.format("kafka").outputMode("update")
    writer = writer.option("kafka.bootstrap.servers", world.servers).option("topic", world.output)
    return writer.trigger(realTime="60 seconds")


def checkpoint_in_a_file(world: World) -> Writer:
    (world.folder / "file").write_text("")
    return world.to_kafka(world.rows(), checkpointLocation=str(world.folder / "file" / "checkpoint"))


def after_micro_batch(query: Callable[[World], DataFrame]) -> Callable[[World], Writer]:
    """With the checkpoint of a micro-batch query that has run."""

    def build(world: World) -> Writer:
        writer = world.to_kafka(query(world))
        writer.trigger(availableNow=True).start().awaitTermination()
        return world.to_kafka(query(world))

    return build


def after_another(
    first: Callable[[World], DataFrame], second: Callable[[World], DataFrame]
) -> Callable[[World], Writer]:
    """With the checkpoint of another query, which wrote it in the format of Real-Time Mode."""

    def build(world: World) -> Writer:
        version = "spark.sql.streaming.stateStore.checkpointFormatVersion"
        provider = "spark.sql.streaming.stateStore.providerClass"
        world.spark.conf.set(version, "2")
        world.spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
        try:
            world.to_kafka(first(world)).trigger(availableNow=True).start().awaitTermination()
        finally:
            world.spark.conf.unset(version)
            world.spark.conf.unset(provider)
        return world.to_kafka(second(world))

    return build


OTHERS = "TAILRACE_CHECKPOINT_OF_ANOTHER_QUERY"

BLOCKED_CHECKPOINTS = [
    blocked("no checkpoint", "TAILRACE_NO_CHECKPOINT", without_checkpoint),
    blocked("a checkpoint below a file", "TAILRACE_CHECKPOINT_NOT_WRITABLE", checkpoint_in_a_file),
    blocked("micro-batch's checkpoint", "TAILRACE_CHECKPOINT_FORMAT", after_micro_batch(lambda w: w.rows())),
    blocked(
        "micro-batch's checkpoint with state",
        "TAILRACE_CHECKPOINT_FORMAT",
        after_micro_batch(lambda w: w.rows().groupBy("key").count()),
    ),
    blocked("a checkpoint of another topic", OTHERS, after_another(lambda w: w.rows(), elsewhere)),
    blocked(
        "a checkpoint with one source more",
        OTHERS,
        after_another(lambda w: w.rows().union(elsewhere(w)), lambda w: w.rows()),
    ),
    blocked(
        "a checkpoint of other state",
        "TAILRACE_CHECKPOINT_STATE",
        after_another(
            lambda w: w.rows().groupBy("key").agg(F.max("id").alias("id")),
            lambda w: w.rows().groupBy("key").agg(F.max("id").alias("id"), F.min("value").alias("first")),
        ),
    ),
]

BLOCKED_SLOTS = [
    blocked(
        "a join of more partitions than slots",
        "TAILRACE_TOO_FEW_SLOTS",
        lambda w: joined_to(w, "inner", mode="append"),
        partitions=4,
    ),
    blocked("more partitions than slots", "TAILRACE_TOO_FEW_SLOTS", lambda w: w.to_kafka(w.rows()), partitions=9),
    blocked(
        "more stages than slots",
        "TAILRACE_TOO_FEW_SLOTS",
        lambda w: w.to_kafka(w.rows().groupBy("key").count()),
        settings={"spark.sql.shuffle.partitions": "8"},
    ),
]

BLOCKED_SETTINGS = [
    # Spark starts it, once.
    *(
        blocked(
            f"a join with state in format {version}",
            "TAILRACE_SETTING_REFUSED",
            lambda w: joined_to(w, "inner", mode="append"),
            settings={"spark.sql.streaming.join.stateFormatVersion": version},
        )
        for version in ("3", "4")
    ),
    blocked(
        "state outside RocksDB",
        "TAILRACE_SETTING_REFUSED",
        lambda w: w.to_kafka(w.rows()),
        settings={
            "spark.sql.streaming.stateStore.providerClass": (
                "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
            )
        },
    ),
    blocked(
        "state in the old format",
        "TAILRACE_SETTING_REFUSED",
        lambda w: w.to_kafka(w.rows()),
        settings={"spark.sql.streaming.stateStore.checkpointFormatVersion": "1"},
    ),
    blocked(
        "a sort before each repartition",
        "TAILRACE_SETTING_REFUSED",
        lambda w: w.to_kafka(w.rows().repartition(2)),
        settings={"spark.sql.execution.sortBeforeRepartition": "true"},
    ),
]

BLOCKED = [*BLOCKED_OPERATORS, *BLOCKED_ENDS, *BLOCKED_CHECKPOINTS, *BLOCKED_SLOTS, *BLOCKED_SETTINGS]


def runs(name: str, query: Callable[[World], DataFrame], **more: Any) -> Case:
    return allowed(name, lambda world: world.to_kafka(query(world)), **more)


def add_one(ids: Any) -> Any:
    return ids + 1


def by_topic_column(world: World) -> Writer:
    rows = world.rows().select(F.lit(world.output).alias("topic"), "value")
    return world.write(rows, "kafka", **{"kafka.bootstrap.servers": world.servers})


def by_pattern(world: World) -> Writer:
    reader = world.spark.readStream.format("kafka").option("kafka.bootstrap.servers", world.servers)
    rows = reader.option("subscribePattern", f"{world.topic}.*").option("startingOffsets", "earliest").load()
    return world.to_kafka(rows.select(F.col("value").cast("string")))


def assigned(world: World) -> Writer:
    reader = world.spark.readStream.format("kafka").option("kafka.bootstrap.servers", world.servers)
    places = json.dumps({world.topic: [0, 1]})
    rows = reader.option("assign", places).option("startingOffsets", "earliest").load()
    return world.to_kafka(rows.select(F.col("value").cast("string")))


arrow = F.udf(add_one, LongType())
pickled = F.udf(add_one, LongType(), useArrow=False)

ALLOWED = [
    runs("select and filter", lambda w: w.rows().where("id >= 0").select("id", F.upper("key").alias("key"))),
    runs("explode", lambda w: w.rows().select("id", F.explode(F.array(F.lit(1), F.lit(2))).alias("n"))),
    runs("union of two sources", lambda w: two_sources(w)[0].union(two_sources(w)[1])),
    runs("broadcast join", lambda w: w.rows().join(F.broadcast(w.table()), "key")),
    runs("left join with a small table", lambda w: w.rows().join(w.spark.range(3), "id", "left")),
    runs("join of two streams", lambda w: joined(w, IN_TIME)),
    runs("join of two streams without time", lambda w: joined(w, "l.key = r.key AND l.id = r.id")),
    runs("join of two streams, then groupBy", lambda w: joined(w, IN_TIME).groupBy("key").count(), partitions=1),
    runs("join of two streams, then udf", lambda w: joined(w, IN_TIME).select(arrow("id").alias("id")), partitions=1),
    runs(
        "join of three streams",
        three_streams,
        partitions=1,
        settings={"spark.sql.shuffle.partitions": "1"},
    ),
    runs("left semi join of two streams", lambda w: joined(w, IN_TIME, "left_semi")),
    allowed("join of two streams, append", lambda w: joined_to(w, "inner", mode="append")),
    allowed("left outer join of two streams", lambda w: joined_to(w, "left_outer", mode="append")),
    allowed("full outer join of two streams", lambda w: joined_to(w, "full_outer", mode="append")),
    runs("groupBy", lambda w: w.rows().groupBy("key").count()),
    runs("count without a key", lambda w: w.rows().groupBy().count()),
    runs("tumbling window", lambda w: late(w).groupBy(F.window("timestamp", "1 minute"), "key").count()),
    runs("sliding window", lambda w: late(w).groupBy(F.window("timestamp", "1 minute", "30 seconds")).count()),
    runs("session window", lambda w: sessions(late(w))),
    runs("session window without a watermark", lambda w: sessions(w.rows())),
    runs("approx_count_distinct", lambda w: w.rows().groupBy("key").agg(F.approx_count_distinct("id").alias("n"))),
    runs("rollup", lambda w: w.rows().rollup("key").count()),
    runs("dropDuplicates", lambda w: w.rows().dropDuplicates(["id"])),
    runs("dropDuplicates with event time", lambda w: late(w).dropDuplicates(["id", "timestamp"])),
    runs("dropDuplicatesWithinWatermark", lambda w: late(w).dropDuplicatesWithinWatermark(["key"])),
    runs("dropDuplicates, then groupBy", lambda w: w.rows().dropDuplicates(["id"]).groupBy("key").count()),
    runs("repartition by number", lambda w: w.rows().repartition(2)),
    runs("repartition by column", lambda w: w.rows().repartition(2, "key")),
    runs("udf", lambda w: w.rows().select(arrow("id").alias("id"))),
    runs("pickled udf", lambda w: w.rows().select(pickled("id").alias("id"))),
    runs("udf in a filter", lambda w: w.rows().where(arrow("id") > 0)),
    runs(
        "udf before and after groupBy",
        lambda w: (
            w.rows()
            .select(arrow("id").alias("id"), "key")
            .groupBy("key")
            .agg(F.max("id").alias("id"))
            .select("key", arrow("id").alias("id"))
        ),
    ),
    runs(
        "transformWithState",
        lambda w: w.rows().groupBy("key").transformWithState(Rows(), "id LONG", "Update", "None"),
    ),
    runs(
        "transformWithStateInPandas",
        lambda w: w.rows().groupBy("key").transformWithStateInPandas(Rows(), "id LONG", "Update", "ProcessingTime"),
    ),
    runs("mapInPandas", lambda w: w.rows().select("id").mapInPandas(same, "id LONG")),
    runs("mapInArrow", lambda w: w.rows().select("id").mapInArrow(same, "id LONG")),
    runs("observe", lambda w: w.rows().observe("seen", F.count("*").alias("n"))),
    runs("watermark without state", late),
    runs("SELECT DISTINCT", in_sql("SELECT DISTINCT key FROM rows_of_the_stream")),
    runs("SQL", in_sql("SELECT key, count(*) AS n FROM rows_of_the_stream WHERE id >= 0 GROUP BY key")),
    allowed("topic in a column", by_topic_column),
    allowed("topics by a pattern", by_pattern),
    allowed("partitions by hand", assigned),
]
