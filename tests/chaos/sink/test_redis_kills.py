"""`tailrace-redis`: SIGKILL of the whole application, and servers that go away, while rows flow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tailrace import EmbeddedKafka, EmbeddedRedis
from tests.helpers.redis import Keys
from tests.helpers.topics import ContinuousLoad, new_topic
from tests.helpers.waiting import let_pass, until

KILLS = 4
SOON_S = 120

APPLICATION = """
import sys
from pyspark.sql import SparkSession, functions as F
import tailrace

servers, topic, url, password_file, rows_key, counts_key, checkpoint = sys.argv[1:]
builder = SparkSession.builder.master("local[8]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.tailrace.warmup.epochs", "0")
spark = tailrace.configure(builder, redis_client=True).getOrCreate()

def start(name, query, key):
    writer = query.writeStream.format("tailrace-redis").queryName(name).outputMode("update")
    writer = writer.option("url", url).option("passwordFile", password_file)
    writer = writer.option("structure", "stream").option("key", key)
    writer = writer.option("checkpointLocation", f"{checkpoint}/{name}")
    return writer.trigger(realTime="5 seconds").start()

def rows():
    read = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    read = read.option("subscribe", topic).option("startingOffsets", "earliest").load()
    parsed = F.from_json(F.col("value").cast("string"), "id LONG, key STRING").alias("row")
    return read.select(parsed).select("row.*")

start("rows", rows().select("id"), rows_key)
start("counts", rows().groupBy("key").agg(F.count("*").alias("n")), counts_key)
spark.streams.awaitAnyTermination()
"""


@pytest.mark.chaos
def test_nothing_is_lost_duplicated_or_steps_back(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers, "in")
    script = tmp_path / "application.py"
    script.write_text(APPLICATION)
    with EmbeddedRedis() as redis, ContinuousLoad(kafka.bootstrap_servers, topic, per_second=300) as load:
        # A stream tells each update of each key.
        rows, counts = Keys(redis, "stream", ""), Keys(redis, "stream", "{key}")
        arguments = [kafka.bootstrap_servers, topic, redis.url, redis.password_file]
        arguments += [rows.options["key"], counts.options["key"], str(tmp_path / "checkpoint")]

        def updates() -> list[list[int]]:
            return [[int(entry["n"]) for entry in counts.stream(name)] for name in counts.names()]

        def counted() -> int:
            return sum(max(of_key) for of_key in updates())

        def written() -> int:
            return len(rows.ids())

        def start() -> subprocess.Popen[bytes]:
            command = [sys.executable, str(script), *arguments]
            with (tmp_path / "log").open("ab") as log:
                return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

        for number in range(KILLS):
            application = start()
            goal = min(written(), counted()) + 300
            until(lambda goal=goal: min(written(), counted()) >= goal, "more rows", within_s=SOON_S)  # type: ignore[misc]
            # Different places in the epoch, and once while the server is away.
            let_pass(0.7 * number)
            if number == 2:
                redis.kill()
            os.killpg(application.pid, signal.SIGKILL)
            application.wait()
            redis.start()
        application = start()
        load.stop()
        until(lambda: len(set(rows.ids())) == load.sent, "all rows", within_s=SOON_S)
        until(lambda: counted() == load.sent, "everything is counted", within_s=SOON_S)
        os.killpg(application.pid, signal.SIGKILL)
        application.wait()
        twice = {number: times for number, times in Counter(rows.ids()).items() if times > 1}
        assert twice == {}
        assert set(rows.ids()) == set(range(load.sent))
        for of_key in updates():
            assert of_key == list(range(1, len(of_key) + 1)), "an update came twice, stepped back, or is missing"
