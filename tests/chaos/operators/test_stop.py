"""Stopping a busy query again and again."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from tailrace import EmbeddedKafka
from tests.helpers.processes import run_python
from tests.helpers.topics import new_topic, produce
from tests.helpers.waiting import comparing_times

STOPPED = """
import sys, threading, time
import tailrace
from pyspark.sql import SparkSession, functions as F
builder = SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false")
builder = builder.config("spark.ui.showConsoleProgress", "false")
spark = tailrace.configure(builder).getOrCreate()
rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", {servers!r})
rows = rows.option("subscribe", {topic!r}).option("startingOffsets", "earliest").load()
values = rows.select(F.col("value").cast("string").alias("value"))
same = F.udf(lambda value: value, "string")
writer = values.select(same("value").alias("value")).writeStream.format("kafka").outputMode("update")
writer = writer.option("kafka.bootstrap.servers", {servers!r}).option("topic", {target!r})
for turn in range(5):
    seen = rows_there({servers!r}, {target!r})
    checkpoint = {checkpoint!r} + str(turn)
    query = writer.option("checkpointLocation", checkpoint).trigger(realTime="60 seconds").start()
    deadline = time.monotonic() + 40
    while rows_there({servers!r}, {target!r}) == seen and time.monotonic() < deadline:
        time.sleep(0.1)
    begun = time.monotonic()
    query.stop()
    print("stopped in", time.monotonic() - begun)
spark.stop()
"""


ROWS_THERE = """
from confluent_kafka import Consumer, TopicPartition
def rows_there(servers, topic):
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "looking"})
    there = sum(consumer.get_watermark_offsets(TopicPartition(topic, number))[1] for number in range(2))
    consumer.close()
    return there
"""


def test_stop_is_quick_and_prints_no_traceback_of_a_worker(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    topic, target = new_topic(kafka.bootstrap_servers, "in"), new_topic(kafka.bootstrap_servers, "out")
    servers, stop = kafka.bootstrap_servers, threading.Event()

    def keep_sending() -> None:
        number = 0
        while not stop.wait(0.02):
            number += 1
            produce(servers, topic, [{"id": number}], key="id")

    sender = threading.Thread(target=keep_sending)
    sender.start()
    try:
        code = ROWS_THERE + STOPPED.format(
            servers=servers, topic=topic, target=target, checkpoint=str(tmp_path / "checkpoint")
        )
        result = run_python(code)
    finally:
        stop.set()
        sender.join()
    assert result.returncode == 0, result.stderr
    took = [float(seconds) for seconds in re.findall("stopped in (.*)", result.stdout)]
    assert len(took) == 5
    with comparing_times():
        assert max(took) < 2
    # Of these, Spark's own code logs errors when any real-time query is stopped, also without Tailrace.
    bare = {"WriteToDataSourceV2Exec", "DataWritingSparkTask", "Utils", "ErrorNotifier"}
    assert set(re.findall(r" ERROR (\w+):", result.stderr)) <= bare
    assert "Traceback" not in result.stderr
    assert "BrokenPipe" not in result.stderr
    assert "TAILRACE_" not in result.stderr, "a worker was taken for lost that was only told to stop"
    assert "RealTimeModeAllowlist" not in result.stderr, "a warning about operators that Tailrace itself put there"
