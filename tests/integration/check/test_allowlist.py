"""Only the loaded plugin takes over Spark's allowlist.

Queries start here as from a language other than Python, without Python's own check before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.column import Column
from pyspark.sql.streaming.query import StreamingQuery

from tailrace import EmbeddedKafka
from tests.helpers.processes import run_python
from tests.helpers.topics import Collector, new_topic, produce
from tests.helpers.waiting import until

ALLOWLIST = "spark.sql.streaming.realTimeMode.allowlistCheck"


def read_from(spark: SparkSession, kafka: EmbeddedKafka, topic: str) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(F.col("key").cast("string"), F.col("value").cast("string"), "timestamp", "offset")
    )


def start_in_the_jvm(writer: Any) -> StreamingQuery:
    return StreamingQuery(writer._jwrite.start())


@contextmanager
def in_real_time(query: DataFrame, kafka: EmbeddedKafka, out: str, checkpoint: Path) -> Iterator[StreamingQuery]:
    writer: Any = query.select(F.to_json(F.struct("*")).alias("value")).writeStream.format("kafka")
    writer = writer.option("kafka.bootstrap.servers", kafka.bootstrap_servers).option("topic", out)
    writer = writer.option("checkpointLocation", str(checkpoint)).outputMode("update")
    started = start_in_the_jvm(writer.trigger(realTime="60 seconds"))
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture
def stream(spark: SparkSession, kafka: EmbeddedKafka) -> DataFrame:
    return read_from(spark, kafka, new_topic(kafka.bootstrap_servers, "in"))


@pytest.fixture
def run_real_time(kafka: EmbeddedKafka, checkpoint: Path) -> Callable[[DataFrame], str]:
    """The message with which a query in Real-Time Mode fails."""

    def run(query: DataFrame) -> str:
        with in_real_time(query, kafka, "out", checkpoint) as started:
            with pytest.raises(StreamingQueryException) as failure:
                started.awaitTermination(20)
            return str(failure.value)

    return run


def test_the_plugin_takes_the_allowlist_over(spark: SparkSession) -> None:
    assert spark.conf.get(ALLOWLIST) == "false"


def test_a_users_own_choice_is_kept() -> None:
    result = run_python(
        "import tailrace\n"
        "from pyspark.sql import SparkSession\n"
        f"builder = SparkSession.builder.master('local[1]').config('{ALLOWLIST}', 'true')\n"
        "spark = tailrace.configure(builder).getOrCreate()\n"
        f"print(spark.conf.get('{ALLOWLIST}'))\n"
    )
    assert result.stdout.split() == ["true"], result.stderr


def test_without_the_extension_sparks_allowlist_stays() -> None:
    """The plugin alone enforces nothing, so it must not relax anything either."""
    result = run_python(
        "import tailrace\n"
        "from pyspark.sql import SparkSession\n"
        "options = tailrace.configure(SparkSession.builder.master('local[1]'))._options\n"
        "options['spark.sql.extensions'] = ''\n"
        "spark = SparkSession.builder.config(map=options).getOrCreate()\n"
        f"print(spark.conf.get('{ALLOWLIST}'))\n"
    )
    assert result.stdout.split() == ["true"], result.stderr


def start(query: DataFrame, **sink: Any) -> None:
    writer: Any = query.writeStream.format(sink.get("format", "console")).outputMode("update")
    start_in_the_jvm(writer.trigger(realTime="5 seconds"))


same: Any = lambda batches: batches  # noqa: E731


REFUSED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "stream-stream join without equal keys": lambda stream: stream.alias("l").join(
        stream.alias("r"), F.expr("l.offset < r.offset")
    ),
    "left anti join of two streams": lambda stream: stream.alias("l").join(
        stream.alias("r"), F.expr("l.key = r.key"), "left_anti"
    ),
    "join without equal keys, cross join": lambda stream: stream.join(
        F.broadcast(stream.sparkSession.range(3)), F.col("id") < F.length("value")
    ),
    "applyInPandasWithState": lambda stream: stream.groupBy("key").applyInPandasWithState(
        same, "key STRING", "n LONG", "update", "NoTimeout"
    ),
    "udtf (Python table function)": lambda stream: stream.lateralJoin(words(F.col("value").outer())),
    "mapInPandas with barrier or a resource profile": lambda stream: stream.mapInPandas(
        same, stream.schema, barrier=True
    ),
    "mapInArrow with barrier or a resource profile": lambda stream: stream.mapInArrow(
        same, stream.schema, barrier=True
    ),
    "repartitionByRange, orderBy": lambda stream: stream.repartitionByRange(2, "value"),
    "limit, offset": lambda stream: stream.limit(5),
}


def words(text: Column) -> Any:
    class Words:
        def eval(self, value: str) -> Iterator[tuple[str]]:
            for word in value.split():
                yield (word,)

    table: Any = F.udtf(Words, returnType="word STRING")
    return table(text)


@pytest.mark.parametrize("name", REFUSED)
def test_an_operator_is_refused_inside_start_in_the_users_terms(stream: DataFrame, name: str) -> None:
    with pytest.raises(IllegalArgumentException) as failure:
        start(REFUSED[name](stream))
    assert failure.value.getCondition() == "TAILRACE_UNSUPPORTED_OPERATOR"
    assert f"{name} cannot run in Real-Time Mode" in str(failure.value)
    assert "Exec" not in str(failure.value)
    assert not stream.sparkSession.streams.active


def test_every_reason_is_given_at_once(stream: DataFrame) -> None:
    first = stream.mapInArrow(same, stream.schema, barrier=True)
    with pytest.raises(IllegalArgumentException) as failure:
        start(first.dropDuplicates(["key"]).repartitionByRange(2, "value"), format="noop")
    message, _, fix = str(failure.value).partition("Fix:")
    for text in (message, fix):
        assert "mapInArrow with barrier or a resource profile" in text
        assert "repartitionByRange, orderBy" in text
        assert "sink 'noop" in text


def test_what_only_the_planner_decides_is_refused_before_a_row_is_read(
    stream: DataFrame, run_real_time: Callable[[DataFrame], str]
) -> None:
    """A table too large to broadcast, by the user's own word."""
    table = stream.sparkSession.createDataFrame([("a", 1)], "key STRING, weight INT").hint("shuffle_hash")
    message = run_real_time(stream.join(table, "key"))
    assert "[TAILRACE_UNSUPPORTED_OPERATOR]" in message
    assert "join that builds a hash table per partition cannot run in Real-Time Mode" in message
    assert "F.broadcast(table)" in message


def test_a_sink_is_refused_inside_start(stream: DataFrame) -> None:
    for writer, name in (
        (stream.writeStream.foreachBatch(lambda _df, _id: None), "foreachBatch"),
        (stream.writeStream.format("memory").queryName("rows"), "memory"),
    ):
        with pytest.raises(IllegalArgumentException) as failure:
            start_in_the_jvm(writer.outputMode("update").trigger(realTime="5 seconds"))  # type: ignore[call-overload]
        assert failure.value.getCondition() == "TAILRACE_UNSUPPORTED_SINK"
        assert f"'{name}'" in str(failure.value)


def test_micro_batch_is_left_alone(spark: SparkSession, kafka: EmbeddedKafka) -> None:
    """Spark's own Python operator, and a sink that Real-Time Mode refuses."""
    topic = new_topic(kafka.bootstrap_servers, "in")
    produce(kafka.bootstrap_servers, topic, [{"id": 1}])
    rows = read_from(spark, kafka, topic)
    seen: list[int] = []
    lengths = rows.select(F.udf(len, "int")(F.col("value")).alias("length"))
    query = lengths.writeStream.foreachBatch(lambda df, _id: seen.extend(r.length for r in df.collect())).start()
    query.processAllAvailable()
    plan = query._jsq.explainInternal(False)
    query.stop()
    assert len(seen) == 1
    assert "ArrowEvalPython" in plan
    assert "RealTime" not in plan


def test_the_static_side_of_a_join_may_do_as_it_likes(
    spark: SparkSession, kafka: EmbeddedKafka, checkpoint: Path
) -> None:
    """A sort and a Python UDF below the broadcast run once and hold no row of the stream back."""
    table = spark.createDataFrame([("a", 1), ("b", 2)], "key STRING, weight INT")
    table = table.withColumn("weight", F.udf(lambda weight: weight, "int")("weight"))
    table = table.repartition(2).groupBy("key").agg(F.max("weight").alias("weight")).orderBy("weight").limit(10)
    topic, out = new_topic(kafka.bootstrap_servers, "in"), new_topic(kafka.bootstrap_servers, "out")
    rows = read_from(spark, kafka, topic).select("key").join(F.broadcast(table), "key")
    with in_real_time(rows, kafka, out, checkpoint), Collector(kafka.bootstrap_servers, out) as collector:
        produce(kafka.bootstrap_servers, topic, [{"key": "a"}, {"key": "b"}, {"key": "c"}])
        until(lambda: len(collector.rows()) == 2, "both joined rows")
        assert {row["key"]: row["weight"] for row in collector.rows()} == {"a": 1, "b": 2}
