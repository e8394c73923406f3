"""Every finding is real: what the check blocks does not work in Spark without Tailrace either."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tailrace import EmbeddedKafka
from tailrace._spark import maven
from tests.helpers.check_cases import BLOCKED
from tests.helpers.check_world import Case, World, settings_of
from tests.helpers.topics import Collector, new_topic, produce
from tests.helpers.waiting import until

# What Spark does changes only with Spark.

ROWS = 36
# Long after a row would have come through, and long before the epoch ends.
STARVED_AFTER_S = 8


@pytest.fixture(scope="module")
def bare_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark with its Kafka connector, and nothing of Tailrace."""
    jars = ",".join(map(str, maven.resolve(maven.KAFKA_CONNECTOR, maven.IvyOptions.from_conf({}))))
    settings: dict[str, Any] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.jars": jars,
        # The JVM of the tests before remembers what it was started with.
        "spark.plugins": "",
        "spark.sql.extensions": "",
        "spark.sql.streaming.streamingQueryListeners": "",
    }
    builder = SparkSession.builder.master("local[6]").config(map=settings)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


def outcome(case: Case, world: World) -> str:
    """`fails`, `starves` when rows never come out within the epoch, or `runs`."""
    try:
        query = case.build(world).start()
    except (PySparkException, Py4JError, ValueError) as refusal:
        return f"fails: {refusal}"
    try:
        with Collector(world.servers, world.output) as out:
            produce(world.servers, world.topic, ({"id": i, "key": f"k{i}"} for i in range(ROWS)))
            until(lambda: len(out.rows()) >= ROWS or query.exception(), "an end", within_s=STARVED_AFTER_S)
            if case.fails_when_the_epoch_ends:
                until(query.exception, "the failure")
    except AssertionError:
        return f"starves: {len(out.rows())} of {ROWS} rows"
    finally:
        query.stop()
    return f"fails: {query.exception()}" if query.exception() else "runs"


def test_it_is_bare(bare_spark: SparkSession) -> None:
    assert not bare_spark.sparkContext.getConf().get("spark.plugins")
    assert bare_spark.conf.get("spark.sql.streaming.realTimeMode.allowlistCheck") == "true"


# Of a sink that is ours, Spark knows nothing.
OF_OUR_SINK = ("TAILRACE_NO_ROW_IDENTITY", "TAILRACE_NOT_DETERMINISTIC")
IN_SPARK = [case for case in BLOCKED if case.code not in OF_OUR_SINK]


@pytest.mark.parametrize("case", IN_SPARK, ids=str)
def test_what_is_blocked_does_not_work_in_spark(
    case: Case, bare_spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    topic = new_topic(kafka.bootstrap_servers, "in", partitions=case.partitions)
    produce(kafka.bootstrap_servers, topic, [{"id": 0, "key": "k0"}])
    with settings_of(case, bare_spark):
        seen = outcome(case, World(bare_spark, kafka.bootstrap_servers, tmp_path, topic))
    assert seen.startswith(("fails", "starves")), seen
    assert "Tailrace" not in seen
