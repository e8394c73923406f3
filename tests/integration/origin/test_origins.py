"""Each row carries its origin through every kind of query to the sink."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from tailrace import EmbeddedKafka
from tests.helpers.scala import compiled_jar
from tests.helpers.topics import new_topic, produce
from tests.helpers.waiting import until

F: Any = functions

ROWS = 600
EVERY_ROW = "spark.tailrace.origin.everyRow"
ORIGIN = ("t", "p", "o")


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    """With a sink that knows where its rows should have come from."""
    jar = compiled_jar()
    # Else, behind a shuffle, only the origins of rows that are timed are known.
    return new_session("local[8]", {"spark.jars": str(jar), EVERY_ROW: "true"})


class Source:
    """Topics whose rows say in columns of their own where they come from."""

    def __init__(self, spark: SparkSession, kafka: EmbeddedKafka) -> None:
        self.spark = spark
        self.servers = kafka.bootstrap_servers
        self.topics = [new_topic(self.servers, "in") for _ in range(2)]
        for topic in self.topics:
            produce(self.servers, topic, ({"id": i, "key": f"k{i % 7}"} for i in range(ROWS)))

    def rows(self, topics: str | None = None) -> DataFrame:
        return (
            self.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", topics or self.topics[0])
            .option("startingOffsets", "earliest")
            .load()
            .select(
                F.from_json(F.col("value").cast("string"), "id LONG, key STRING").alias("row"),
                F.col("topic").alias("t"),
                F.col("partition").alias("p"),
                F.col("offset").alias("o"),
            )
            .select("row.*", *ORIGIN)
        )


@pytest.fixture(scope="module")
def source(spark: SparkSession, kafka: EmbeddedKafka) -> Source:
    return Source(spark, kafka)


def last_of_each_key(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("n"), *(F.last(column).alias(column) for column in ORIGIN))


def through_pandas(rows: DataFrame) -> DataFrame:
    @F.pandas_udf("long")  # type: ignore[untyped-decorator]
    def one_more(ids: pd.Series) -> pd.Series:
        return ids + 1

    return rows.withColumn("more", one_more("id"))


def through_python(rows: DataFrame) -> DataFrame:
    return rows.withColumn("upper", F.udf(lambda key: key.upper(), "string")("key"))


def wide(rows: DataFrame, columns: int) -> DataFrame:
    more = (F.when(F.col("id") % 2 == 0, F.col("id")).alias(f"c{number}") for number in range(columns - 5))
    return rows.select("*", *more)


def with_table(rows: DataFrame) -> DataFrame:
    table = rows.sparkSession.createDataFrame([(f"k{i}", i) for i in range(7)], "key STRING, number INT")
    return rows.join(F.broadcast(table), "key")


SHAPES: dict[str, tuple[Callable[[Source], DataFrame], int]] = {
    "filter": (lambda source: source.rows().where("id % 3 = 0"), ROWS // 3),
    "explode": (lambda source: source.rows().withColumn("copy", F.explode(F.array(F.lit(1), F.lit(2)))), 2 * ROWS),
    "two topics": (lambda source: source.rows(",".join(source.topics)), 2 * ROWS),
    "repartition by column": (lambda source: source.rows().repartition(3, "key"), ROWS),
    "repartition in turn": (lambda source: source.rows().repartition(3), ROWS),
    "aggregation": (lambda source: last_of_each_key(source.rows()), ROWS),
    "deduplication": (lambda source: source.rows().dropDuplicates(["id"]), ROWS),
    "union": (lambda source: source.rows().union(source.rows(source.topics[1])), 2 * ROWS),
    "broadcast join": (lambda source: with_table(source.rows()), ROWS),
    "udf": (lambda source: through_python(source.rows()), ROWS),
    "pandas_udf after a shuffle": (lambda source: through_pandas(source.rows().repartition(2, "key")), ROWS),
    "chain": (
        lambda source: last_of_each_key(through_python(with_table(source.rows().where("id % 2 = 0")))),
        ROWS // 2,
    ),
    # Null bits come in words of 64: the last of them may or may not be in use.
    "63 columns": (lambda source: wide(source.rows(), 63).repartition(2, "key"), ROWS),
    "64 columns": (lambda source: wide(source.rows(), 64).repartition(2, "key"), ROWS),
    "65 columns": (lambda source: wide(source.rows(), 65).repartition(2, "key"), ROWS),
    "128 columns": (lambda source: wide(source.rows(), 128).repartition(2, "key"), ROWS),
    "two shuffles": (lambda source: last_of_each_key(source.rows().repartition(2, "id")), ROWS),
}


def check(rows: DataFrame, expected: int, checkpoint: Path) -> Any:
    """Run the query into the sink that compares; the sink's findings."""
    jvm: Any = rows.sparkSession.sparkContext._jvm
    findings = jvm.tailrace.testing.OriginCheck
    findings.reset()
    started = (
        rows._jdf.writeStream()
        .foreach(jvm.tailrace.testing.OriginCheck())
        .outputMode("update")
        .option("checkpointLocation", str(checkpoint))
        .trigger(jvm.org.apache.spark.sql.streaming.Trigger.RealTime("60 seconds"))
        .start()
    )
    try:
        until(lambda: findings.seen() >= expected or started.exception().isDefined(), f"{expected} rows")
        assert not started.exception().isDefined(), started.exception().get().toString()
    finally:
        started.stop()
    return findings


@pytest.mark.parametrize("shape", SHAPES)
def test_the_engine_knows_where_each_row_came_from(shape: str, source: Source, checkpoint: Path) -> None:
    query, expected = SHAPES[shape]
    findings = check(query(source), expected, checkpoint)
    assert findings.seen() == expected
    assert findings.mismatches() == 0, findings.example()
    assert findings.withoutOrigin() == 0


def test_rows_with_and_without_an_origin_go_through_one_shuffle(source: Source, checkpoint: Path) -> None:
    """As they do under load, when most rows are not timed; none gets another's origin, and none is changed."""
    source.spark.conf.set(EVERY_ROW, "false")
    try:
        rows = source.rows(",".join(source.topics)).repartition(2, "key")
        findings = check(last_of_each_key(rows), 2 * ROWS, checkpoint)
    finally:
        source.spark.conf.set(EVERY_ROW, "true")
    assert findings.seen() == 2 * ROWS
    assert 0 < findings.withoutOrigin() < 2 * ROWS
    assert findings.mismatches() == 0, findings.example()


def test_a_row_sheds_its_origin_when_it_leaves_a_shuffle(source: Source, checkpoint: Path) -> None:
    """Between two shuffles a filter passes rows on as they are, with whatever is left in their bytes."""
    source.spark.conf.set(EVERY_ROW, "false")
    try:
        between = source.rows(",".join(source.topics)).repartition(2, "id").where("id >= 0")
        findings = check(between.repartition(2, "key"), 2 * ROWS, checkpoint)
    finally:
        source.spark.conf.set(EVERY_ROW, "true")
    assert findings.seen() == 2 * ROWS
    assert 0 < findings.withoutOrigin() < 2 * ROWS
    assert findings.mismatches() == 0, findings.example()


def test_an_operator_that_reads_ahead_would_be_caught(source: Source, checkpoint: Path) -> None:
    """The comparison above can fail."""
    rows = source.rows()
    jvm: Any = source.spark.sparkContext._jvm
    ahead = DataFrame(jvm.tailrace.testing.OriginCheck.readingAhead(rows._jdf), source.spark)
    # The last row of each partition is held back.
    findings = check(ahead, ROWS - 2, checkpoint)
    assert findings.mismatches() > ROWS // 2
