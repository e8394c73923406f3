"""A query that reads topics of one name on two clusters, and partitions that no source reads any more."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import EmbeddedKafka
from tailrace._process.machine_load import stretched
from tailrace.kafka import create_topics
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import ContinuousLoad, all_messages, create_again, headers_of, new_topic, produce
from tests.helpers.waiting import until

SINK = "tailrace-kafka"
EPOCH = "10 minutes"
SOON_S = 300


@pytest.fixture(scope="module")
def other_kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as broker:
        yield broker


def read(spark: SparkSession, servers: str, topic: str, cluster: str) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "false")
        .load()
        .select(F.from_json(F.col("value").cast("string"), "id LONG, key STRING, text STRING").alias("row"))
        .select("row.*", F.lit(cluster).alias("cluster"))
    )


def start(
    pipeline: Pipeline, rows: DataFrame, *, epoch: str = EPOCH, sink: str = SINK, **options: str
) -> StreamingQuery:
    out = rows.select(F.to_json(F.struct("*")).alias("value"))
    writer = pipeline.writer(out, sink).option("topic", pipeline.output).options(**options)
    return writer.trigger(realTime=epoch).start()  # type: ignore[call-overload,no-any-return]


def ids_of(pipeline: Pipeline, cluster: str) -> Counter[int]:
    found = (json.loads(message.value() or b"") for message in all_messages(pipeline.servers, pipeline.output))
    return Counter(row["id"] for row in found if row["cluster"] == cluster)


def test_each_cluster_is_caught_up_with_by_itself(pipeline: Pipeline, other_kafka: EmbeddedKafka) -> None:
    """The first has many records and the other few: it must not be asked for the first one's."""
    other = other_kafka.bootstrap_servers
    create_topics(other, [pipeline.input], partitions=2)
    both = read(pipeline.spark, pipeline.servers, pipeline.input, "first").union(
        read(pipeline.spark, other, pipeline.input, "other")
    )
    pipeline.send(range(5000))
    query = start(pipeline, both)
    until(lambda: len(ids_of(pipeline, "first")) == 5000, "the first cluster's rows")
    query.stop()
    commits = len(pipeline.log("commits"))
    # Records keep coming in, so the epoch does not end for lack of them.
    with ContinuousLoad(other, pipeline.input, per_second=20) as load:
        query = start(pipeline, both, epoch="5 seconds")
        until(lambda: len(pipeline.log("commits")) >= commits + 2, "two epochs")
        load.stop()
        until(lambda: ids_of(pipeline, "other") == Counter(range(load.sent)), "all other rows")
    assert query.isActive
    assert ids_of(pipeline, "first") == Counter(range(5000))


def test_dead_letters_come_from_their_own_cluster(pipeline: Pipeline, other_kafka: EmbeddedKafka) -> None:
    other = other_kafka.bootstrap_servers
    create_topics(other, [pipeline.input], partitions=2)
    letters = new_topic(pipeline.servers, "dead")
    create_topics(other, [letters], partitions=2)
    for servers, cluster in ((pipeline.servers, "first"), (other, "other")):
        texts = ({"id": i, "key": cluster, "text": f"{cluster}-{i}" if i == 3 else str(i)} for i in range(6))
        produce(servers, pipeline.input, texts)
    both = read(pipeline.spark, pipeline.servers, pipeline.input, "first").union(
        read(pipeline.spark, other, pipeline.input, "other")
    )
    numbers = both.withColumn("number", F.col("text").cast("int"))
    query = start(pipeline, numbers, sink="kafka", onError="dead-letter", deadLetterTopic=letters)
    for cluster in ("first", "other"):
        until(lambda: set(ids_of(pipeline, cluster)) == {0, 1, 2, 4, 5}, f"{cluster}'s rows")  # noqa: B023
    assert query.isActive
    for servers, cluster in ((pipeline.servers, "first"), (other, "other")):
        (letter,) = all_messages(servers, letters)
        assert json.loads(letter.value() or b"")["text"] == f"{cluster}-3"
        assert headers_of(letter)["tailrace-source"].startswith(pipeline.input)


def test_a_partition_that_is_gone_is_not_waited_for(
    spark: SparkSession, kafka: EmbeddedKafka, checkpoint: Path
) -> None:
    """Its rows cannot be replayed. Later runs must not read back the output from there for ever."""
    pipeline = Pipeline(spark, kafka, checkpoint, input_partitions=1)
    rows = read(spark, pipeline.servers, pipeline.input, "first")
    pipeline.send(range(5), keys=1)
    query = start(pipeline, rows)
    until(lambda: len(ids_of(pipeline, "first")) == 5, "rows")
    tailrace.drain(query, timeout_s=stretched(SOON_S))
    admin = AdminClient({"bootstrap.servers": pipeline.servers})
    for changed in admin.create_partitions([NewPartitions(pipeline.input, 2)]).values():
        changed.result(30)
    query = start(pipeline, rows)
    pipeline.send(range(5, 25), keys=20)
    until(lambda: len(ids_of(pipeline, "first")) == 25, "rows of both partitions")
    query.stop()
    create_again(pipeline.servers, pipeline.input, partitions=1)
    pipeline.send(range(100, 140))
    query = start(pipeline, rows, epoch="5 seconds")
    pipeline.send(range(140, 150))
    until(lambda: 149 in ids_of(pipeline, "first"), "rows of the new topic")
    written = ids_of(pipeline, "first").total()
    until(lambda: logged_end(checkpoint) >= written, "the read-back starts at the end")


def logged_end(checkpoint: Path) -> int:
    """The records before the offsets at which the next read-back starts."""
    logs = sorted((checkpoint / "tailrace-sink" / "epochs").glob("[0-9]*"), key=lambda entry: int(entry.name))
    ends = json.loads(logs[-1].read_text().split("\n", 1)[1])["ends"]
    return sum(offset for offsets in ends.values() for offset in offsets.values())
