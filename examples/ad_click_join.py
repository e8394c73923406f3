"""Which impression of an ad led to this click? A join of two streams, answered while the user is still on the page.

Impressions and clicks arrive on two topics. A click belongs to an impression of the same ad to the same user within the
ten seconds before it. The answer leaves as soon as the second of the two arrives, whichever that is.

    python examples/ad_click_join.py

It starts its own Apache Kafka, shows some ads, and ends by itself.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tailrace

CLICKED_WITHIN = "INTERVAL 10 SECONDS"
LATENESS = "30 seconds"


def read(spark: SparkSession, servers: str, topic: str, side: str) -> DataFrame:
    """`id`, `ad`, `visitor` and `at` of each record, each with the side's name before it."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    parsed = records.select(
        F.from_json(F.col("value").cast("string"), "id LONG, ad STRING, visitor STRING, at DOUBLE").alias("row")
    )
    columns = [F.col(f"row.{name}").alias(f"{side}_{name}") for name in ("id", "ad", "visitor")]
    # The watermark says how late a row may be, and so how long the other side is kept.
    return parsed.select(*columns, F.timestamp_seconds("row.at").alias(f"{side}_at")).withWatermark(
        f"{side}_at", LATENESS
    )


def attribute(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    """The ordinary join of two streams; in micro-batch it is the same line."""
    return impressions.join(
        clicks,
        F.expr(
            "impression_ad = click_ad AND impression_visitor = click_visitor "
            f"AND click_at BETWEEN impression_at AND impression_at + {CLICKED_WITHIN}"
        ),
    )


def show_ads(servers: str, count: int) -> int:
    """Every second impression is clicked, and now and then the click is there first. Returns the number of clicks."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    clicks = 0
    for number in range(count):
        about = {"id": number, "ad": f"ad {number % 7}", "visitor": f"visitor {number}"}
        records = [("impressions", {**about, "at": time.time()})]
        if number % 2 == 0:
            records.append(("clicks", {**about, "at": time.time() + 0.1}))
            clicks += 1
        random.shuffle(records)
        for topic, record in records:
            producer.produce(topic, key=str(record["visitor"]), value=json.dumps(record))
            producer.flush()
            time.sleep(0.05)
    return clicks


def read_answers(servers: str, expected: int, within_s: float = 60) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "answers"})
    consumer.assign([TopicPartition("attributed", partition, 0) for partition in (0, 1)])
    found, deadline = 0, time.monotonic() + within_s
    while found < expected and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            answer = json.loads(message.value() or b"{}")
            found += 1
            click = f"click {answer['click_id']} of {answer['click_visitor']}"
            print(f"{click} came from impression {answer['impression_id']}")
    consumer.close()
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--ads", type=int, default=40, help="how many to show")
    ads = arguments.parse_args().ads
    # Two partitions of each topic, and two tasks that join: six slots.
    builder = SparkSession.builder.master("local[6]").config("spark.sql.shuffle.partitions", "2")
    spark = tailrace.configure(builder).getOrCreate()
    with tailrace.EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as checkpoint:
        servers = kafka.bootstrap_servers
        kafka.create_topics(["impressions", "clicks", "attributed"], partitions=2)
        attributed = attribute(
            read(spark, servers, "impressions", "impression"), read(spark, servers, "clicks", "click")
        )
        query = (
            attributed.select(F.to_json(F.struct("*")).alias("value"))
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", "attributed")
            .option("checkpointLocation", checkpoint)
            .trigger(realTime="5 minutes")  # type: ignore[call-overload]
            .start()
        )
        clicks = show_ads(servers, ads)
        found = read_answers(servers, clicks)
        print(f"{found} of {clicks} clicks attributed")
        print(tailrace.latency(query))
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
