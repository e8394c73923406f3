"""The check of a script whose threads never end."""

from __future__ import annotations

import json
from pathlib import Path

from tailrace import EmbeddedKafka
from tests.helpers.processes import tailrace
from tests.helpers.topics import new_topic

THREADS = """
import threading, time, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[4]").create()
rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", sys.argv[2])
writer = rows.load().select("value").writeStream.format("console").outputMode("update").trigger(realTime="5 minutes")


def run(name):
    time.sleep(1)
    query = writer.queryName(name).start()
    print("started " + query.name + " " + query.id)
    query.stop()


thread = threading.Thread(target=run, args=("in a thread",))
thread.start()
thread.join()
writer.queryName("in the main one").start()
while True:
    time.sleep(0.1)
"""


def test_a_script_with_threads_that_never_ends(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    script = tmp_path / "threads.py"
    script.write_text(THREADS)
    result = tailrace("check", "--json", str(script), kafka.bootstrap_servers, new_topic(kafka.bootstrap_servers, "in"))
    assert result.returncode == 0, result.stderr
    assert [query["name"] for query in json.loads(result.stdout)["queries"]] == ["in a thread", "in the main one"]
    assert "started in a thread" in result.stderr
