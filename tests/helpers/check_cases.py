"""Small queries, each with the findings a check must report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tailrace
from tests.helpers.check_world import (
    BY_SPARK,
    IN_TIME,
    OPERATOR,
    World,
    Writer,
    blocked,
    grouped_mean,
    joined,
    joined_to,
    operator,
    same,
    sessions,
    two_sources,
    words,
)
from tests.helpers.topics import new_topic

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
