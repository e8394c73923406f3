"""How is this game going? The session of each player, updated with every action.

Players' actions arrive on a topic. What a player does without a break of more than three seconds is one session. Each
action is answered at once with the session so far, so a bonus can be given while the player is still there.

    python examples/gaming_sessions.py

It starts its own Apache Kafka, lets some players play, and ends by itself.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tailrace

BREAK = "3 seconds"
LATENESS = "10 seconds"
BONUS_AT = 100


def read(spark: SparkSession, servers: str) -> DataFrame:
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "actions")
        .option("startingOffsets", "earliest")
        .load()
    )
    parsed = records.select(
        F.from_json(F.col("value").cast("string"), "player STRING, score LONG, at DOUBLE").alias("row")
    )
    return parsed.select("row.player", "row.score", F.timestamp_seconds("row.at").alias("at"))


def sittings(actions: DataFrame) -> DataFrame:
    """The ordinary aggregation by session windows; the status says what has become of the session."""
    return (
        actions.withWatermark("at", LATENESS)
        .groupBy(F.session_window("at", BREAK).alias("session"), "player")
        .agg(F.count("*").alias("actions"), F.sum("score").alias("score"), tailrace.session_status())
        .withColumn("bonus", F.col("score") >= BONUS_AT)
    )


def play(servers: str) -> int:
    """One player keeps playing, one takes a break, and one's middle action comes last. By event time, so the
    program does not wait. Returns how many answers that makes."""
    began = float(int(time.time()))
    actions: list[tuple[str, int, float]] = [("ann", 30, second) for second in range(5)]
    actions += [("ben", 10, 0), ("ben", 10, 2), ("ben", 10, 30)]
    actions += [("cem", 50, 0), ("cem", 50, 5), ("cem", 50, 2.5)]
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for player, score, second in actions:
        record = {"player": player, "score": score, "at": began + second}
        producer.produce("actions", key=player, value=json.dumps(record))
        producer.flush()
    # Cem's second session becomes part of the first one, which is reported as well.
    return len(actions) + 1


def read_answers(servers: str, expected: int, within_s: float = 60) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "answers"})
    consumer.assign([TopicPartition("sittings", partition, 0) for partition in (0, 1)])
    found, deadline = 0, time.monotonic() + within_s
    while found < expected and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            answer = json.loads(message.value() or b"{}")
            found += 1
            told = f"{answer['player']}: {answer['status']}, {answer['actions']} actions, score {answer['score']}"
            print(told + (", bonus" if answer["bonus"] else ""))
    consumer.close()
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.parse_args()
    # Two partitions of the topic, and two tasks that keep sessions: four slots.
    builder = SparkSession.builder.master("local[4]").config("spark.sql.shuffle.partitions", "2")
    spark = tailrace.configure(builder).getOrCreate()
    with tailrace.EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as checkpoint:
        servers = kafka.bootstrap_servers
        kafka.create_topics(["actions", "sittings"], partitions=2)
        query = (
            sittings(read(spark, servers))
            .select(F.col("player").alias("key"), F.to_json(F.struct("*")).alias("value"))
            .writeStream.format("tailrace-kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", "sittings")
            .option("checkpointLocation", checkpoint)
            .outputMode("update")
            .trigger(realTime="5 minutes")  # type: ignore[call-overload]
            .start()
        )
        expected = play(servers)
        found = read_answers(servers, expected)
        print(f"{found} of {expected} answers")
        print(tailrace.latency(query))
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
