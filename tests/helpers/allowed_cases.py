"""Queries that the check lets start, and that run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from tests.helpers.check_cases import (
    in_sql,
)
from tests.helpers.check_world import (
    IN_TIME,
    Case,
    Rows,
    World,
    Writer,
    allowed,
    joined,
    joined_to,
    late,
    same,
    sessions,
    three_streams,
    two_sources,
)


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
