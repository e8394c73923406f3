"""`tailrace-redis`: rows become hashes, strings, members and entries, in batches as large as the load."""

from __future__ import annotations

import json

from pyspark.sql import functions as F

import tailrace
from tailrace import EmbeddedRedis
from tests.helpers.pipeline import Pipeline
from tests.helpers.redis import SOON_S, Keys
from tests.helpers.waiting import until


def test_a_hash_has_the_other_columns(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    keys = Keys(redis, "hash", "{key}:{{x}}", ttl="1 hour")
    pipeline.send(range(3000), keys=7)
    # The last row of each key counts, and takes away the field that an earlier one has set.
    note = F.when(F.col("id") < 100, "early").alias("note")
    with keys.running(pipeline, pipeline.rows().select("key", "id", note)) as query:
        expected = {f"k{key}:{{x}}": {"id": str(max(range(key, 3000, 7)))} for key in range(7)}
        until(lambda: {name: keys.hash(name) for name in keys.names()} == expected, "the last rows", within_s=SOON_S)
        assert keys.batches(query) < 1500, "rows were not written together"
    assert 0 < redis.execute("PTTL", keys.key("k0:{x}")) <= 3_600_000


def test_a_string_is_the_row_as_json(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    keys = Keys(redis, "string")
    with keys.running(pipeline, pipeline.rows().select("id", "key")):
        pipeline.send(range(3))
        until(lambda: len(keys.names()) == 3, "the rows", within_s=SOON_S)
    assert json.loads(redis.execute("GET", keys.key(2))) == {"id": 2, "key": "k2"}
    assert redis.execute("PTTL", keys.key(2)) == -1


def test_a_string_can_be_one_column(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    keys = Keys(redis, "string", value="key")
    with keys.running(pipeline, pipeline.rows().select("id", "key")):
        pipeline.send(range(1))
        until(lambda: redis.execute("GET", keys.key(0)) == "k0", "the row", within_s=SOON_S)


def test_a_sorted_set_ranks(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    keys = Keys(redis, "sorted-set", "board", member="key", score="points")
    pipeline.send(range(30), keys=3)
    rows = pipeline.rows().groupBy("key").agg(F.sum("id").cast("double").alias("points"))
    with keys.running(pipeline, rows):
        top = ["k2", "155", "k1", "145", "k0", "135"]
        until(
            lambda: redis.execute("ZREVRANGE", keys.key("board"), 0, -1, "WITHSCORES") == top,
            "the ranks",
            within_s=SOON_S,
        )


def test_a_stream_is_appended_to_and_trimmed(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    whole, trimmed = Keys(redis, "stream", "events"), Keys(redis, "stream", "events", maxLen="100")
    pipeline.send(range(2000))
    nothing = F.lit(None).cast("string").alias("nothing")
    with whole.running(pipeline, pipeline.rows().select("id", "key", nothing)):
        whole.wait_for(2000, "events")
    assert whole.ids("events") == list(range(2000))
    assert whole.stream("events")[0].keys() == {"id", "key"}, "a null became a field"
    pipeline.use_fresh_output(pipeline.checkpoint.with_name("trimmed"))
    with trimmed.running(pipeline, pipeline.rows().select("id")):
        until(lambda: trimmed.names() and trimmed.added("events") == 2000, "all rows", within_s=SOON_S)
    # About: Redis removes whole nodes of its tree.
    assert 100 <= len(trimmed.ids("events")) <= 400


def test_a_single_row_is_written_at_once(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    keys = Keys(redis, "stream", "events")
    with keys.running(pipeline, pipeline.rows().select("id")) as query:
        for number in range(3):
            pipeline.send(range(number, number + 1))
            keys.wait_for(number + 1, "events")
        assert keys.batches(query) == 3
        found = until(lambda: tailrace.latency(query).figure("acknowledgement"), "figures", within_s=SOON_S)
        whole = until(lambda: tailrace.latency(query).figure("end_to_end"), "figures", within_s=SOON_S)
    assert whole.max_ms >= found.max_ms


TYPES = {
    "flag": "true",
    "whole": "-8",
    "large": "9007199254740993",
    "twice": "2.25",
    "exact": "1234567890.1234",
    "words": "a 'quoted' \"word\" \\ ünï\n2nd line",
    "bytes": "\x00\udcff\x10",
    "day": "2024-02-29",
    "moment": "2024-02-29T12:34:56.123456Z",
    "local": "2024-02-29T12:34:56.000001",
    "tags": '["a","b \\"c"]',
    "point": '{"x":1,"at":"2024-02-29T12:34:56.123456Z"}',
}


def test_types_come_through(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    keys = Keys(redis, "hash")
    pipeline.spark.conf.set("spark.sql.session.timeZone", "UTC")
    moment = F.expr("TIMESTAMP'2024-02-29 12:34:56.123456Z'")
    query = pipeline.rows().select(
        "id",
        F.lit(True).alias("flag"),
        F.lit(-8).alias("whole"),
        F.lit(9007199254740993).alias("large"),
        F.lit(2.25).alias("twice"),
        F.lit("1234567890.1234").cast("decimal(20, 4)").alias("exact"),
        F.lit(TYPES["words"]).alias("words"),
        F.expr("X'00FF10'").alias("bytes"),
        F.lit("2024-02-29").cast("date").alias("day"),
        moment.alias("moment"),
        F.expr("TIMESTAMP_NTZ'2024-02-29 12:34:56.000001'").alias("local"),
        F.expr("array('a', 'b \"c')").alias("tags"),
        F.struct(F.lit(1).alias("x"), moment.alias("at")).alias("point"),
        F.expr("CAST(NULL AS INT)").alias("nothing"),
    )
    with keys.running(pipeline, query):
        pipeline.send(range(1))
        found = until(lambda: keys.hash(0), "the row", within_s=SOON_S)
    assert found == TYPES


def test_long_values_and_many_columns_come_through(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    """A batch is packed into one argument, in which lengths have several forms."""
    lengths = (0, 31, 32, 255, 256, 65_535, 65_536)
    many = [F.lit(str(number)).alias(f"column_{number}") for number in range(70)]
    keys = Keys(redis, "hash", "{length}")
    length_of = F.element_at(F.array(*map(F.lit, lengths)), (F.col("id") + 1).cast("int"))
    rows = pipeline.rows().select(length_of.alias("length"))
    pipeline.send(range(len(lengths)))
    with keys.running(pipeline, rows.select("length", F.expr("repeat('x', length)").alias("text"), *many)):
        until(lambda: len(keys.names()) == len(lengths), "all rows", within_s=SOON_S)
        for length in lengths:
            found = keys.hash(length)
            assert len(found.pop("text")) == length
            assert found == {f"column_{number}": str(number) for number in range(len(many))}
