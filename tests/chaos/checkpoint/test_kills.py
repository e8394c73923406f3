"""SIGKILL in the middle of every step of a commit: the query resumes from there, and nothing is lost."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tailrace import EmbeddedKafka
from tests.helpers.pipeline import Pipeline, has_counted
from tests.helpers.scala import compiled_jar
from tests.helpers.waiting import until

KILLED = "org.apache.spark.sql.tailrace.checkpoint.KilledCheckpointFiles"
SPARKS_OWN = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"

# Counts rows by key in short epochs, and dies at the given step of what it writes.
APP = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import tailrace
from tests.helpers.pipeline import Pipeline

servers, source, target, checkpoint, jar, last_step = sys.argv[1:]
builder = SparkSession.builder.master("local[6]").config("spark.ui.enabled", "false").config("spark.jars", jar)
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.tailrace.warmup.epochs", "0")
builder = builder.config("spark.sql.streaming.realTimeMode.minBatchDuration", "1000")
builder = builder.config("spark.sql.streaming.checkpointFileManagerClass", "%s")
builder = builder.config("spark.tailrace.testing.lastStep", last_step)
spark = tailrace.configure(builder).getOrCreate()
pipeline = Pipeline.__new__(Pipeline)
pipeline.spark, pipeline.servers, pipeline.checkpoint = spark, servers, Path(checkpoint)
pipeline.input, pipeline.output = source, target
with pipeline.running(pipeline.counts(), epoch="1 seconds") as query:
    query.awaitTermination()
""" % (KILLED,)  # noqa: UP031
# A commit with two partitions of state takes about 70 steps, the first start as many again.
STEPS = random.Random(7).sample(range(160), 10)
FIRST_STEPS = random.Random(11).sample(range(90), 3)


@pytest.fixture(scope="module")
def jar() -> Path:
    return compiled_jar()


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession], jar: Path) -> SparkSession:
    return new_session("local[6]", {"spark.jars": str(jar)})


def test_counts_are_right_whatever_step_was_the_last(
    spark: SparkSession, kafka: EmbeddedKafka, jar: Path, tmp_path: Path
) -> None:
    pipeline = Pipeline(spark, kafka, tmp_path / "checkpoint")
    sent = 0
    for last_step in STEPS:
        pipeline.send(range(sent, sent + 20), keys=1)
        sent += 20
        run_until_killed(pipeline, jar, last_step)
    own = spark.conf.get(MANAGER_KEY)
    try:
        for manager in (SPARKS_OWN, own):
            spark.conf.set(MANAGER_KEY, str(manager))
            pipeline.send(range(sent, sent + 20), keys=1)
            sent += 20
            with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch="5 seconds"):
                until(has_counted(out, sent), f"{sent} rows counted")
                commits = len(pipeline.log("commits"))
                until(lambda: len(pipeline.log("commits")) > commits, "a commit")  # noqa: B023
                assert max(row["n"] for row in out.rows()) == sent, "a row was counted twice"
    finally:
        spark.conf.set(MANAGER_KEY, str(own))


@pytest.mark.parametrize("last_step", FIRST_STEPS)
def test_a_query_that_never_came_to_its_first_commit(
    spark: SparkSession, kafka: EmbeddedKafka, jar: Path, tmp_path: Path, last_step: int
) -> None:
    pipeline = Pipeline(spark, kafka, tmp_path / "checkpoint")
    pipeline.send(range(20), keys=1)
    run_until_killed(pipeline, jar, last_step)
    with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch="5 seconds"):
        until(has_counted(out, 20), "all rows counted")
        assert max(row["n"] for row in out.rows()) == 20


def run_until_killed(pipeline: Pipeline, jar: Path, last_step: int) -> None:
    arguments = [pipeline.servers, pipeline.input, pipeline.output, str(pipeline.checkpoint), str(jar), str(last_step)]
    app = subprocess.Popen([sys.executable, "-c", APP, *arguments], stderr=subprocess.PIPE, text=True)
    _, said = app.communicate(timeout=120)
    assert app.returncode != 0
    # Not by something else, such as what the kill before left half written.
    assert "killing myself" in said, said
