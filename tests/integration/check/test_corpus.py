"""Small queries: `start()` refuses each one that the check blocks, and each one that it allows runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tailrace
from tailrace import EmbeddedKafka, TailraceError
from tailrace.check.check import verdict_on
from tailrace.check.facts import facts_of
from tailrace.contract.findings import Severity
from tailrace.demo.query import decide, read_payments, write_decisions
from tests.helpers.allowed_cases import ALLOWED
from tests.helpers.check_cases import BLOCKED
from tests.helpers.check_world import Case, World, settings_of
from tests.helpers.topics import Collector, new_topic, produce
from tests.helpers.waiting import until


@contextmanager
def world_of(case: Case, spark: SparkSession, kafka: EmbeddedKafka, folder: Path) -> Iterator[World]:
    topic = new_topic(kafka.bootstrap_servers, "in", partitions=case.partitions)
    with settings_of(case, spark):
        yield World(spark, kafka.bootstrap_servers, folder, topic)


def send_rows(world: World) -> None:
    produce(world.servers, world.topic, ({"id": number, "key": f"k{number % 2}"} for number in range(4)))


@pytest.mark.parametrize("case", BLOCKED, ids=str)
def test_what_is_blocked_does_not_start(case: Case, spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    with world_of(case, spark, kafka, tmp_path) as world:
        send_rows(world)
        writer = case.build(world)
        there = sorted(str(path) for path in tmp_path.rglob("*"))
        verdict = verdict_on(facts_of(writer), spark)
        assert [finding.code for finding in verdict.of(Severity.BLOCKING)] == [case.code], verdict
        assert all(finding.fix for finding in verdict.of(Severity.BLOCKING))
        assert "Exec" not in str(verdict)
        with pytest.raises(TailraceError) as failure:
            writer.start()
        assert failure.value.code == case.code
        assert sorted(str(path) for path in tmp_path.rglob("*")) == there, "neither sink nor checkpoint is touched"
    assert not spark.streams.active


@pytest.mark.parametrize("case", ALLOWED, ids=str)
def test_what_is_allowed_runs(case: Case, spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    with world_of(case, spark, kafka, tmp_path) as world:
        writer = case.build(world)
        verdict = verdict_on(facts_of(writer), spark)
        assert not verdict.blocked, verdict
        assert verdict.shape.slots is not None
        assert verdict.shape.slots <= 6
        query = writer.start()
        try:
            with Collector(world.servers, world.output) as out:
                send_rows(world)
                until(lambda: out.rows() or query.exception(), "a row")
            assert query.exception() is None
        finally:
            query.stop()


def test_no_false_alarm_on_the_demo(spark: SparkSession, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    world = World(spark, kafka.bootstrap_servers, tmp_path)
    never_called: Any = None
    decided = decide(read_payments(spark, world.servers, world.topic), never_called)
    writer: Any = write_decisions(decided, world.servers, world.output, str(tmp_path / "checkpoint"))
    verdict = tailrace.check(writer.trigger(realTime="60 seconds"))
    assert {finding.severity for finding in verdict.findings} == {Severity.NOTE}, verdict


def test_there_are_enough_of_them() -> None:
    assert len({case.name for case in [*BLOCKED, *ALLOWED]}) >= 60
