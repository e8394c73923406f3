"""A query started right after another one was stopped gets the slots that the old tasks release."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tailrace._spark.slots import busy_slots, canceled_tasks
from tailrace.check.slot_wait import WAIT_KEY
from tailrace.errors import NotReadyError, TailraceError
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import until

SLOTS = 2
EPOCH = "3 minutes"
HELD_S = 10


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    """With exactly as many slots as a query over two partitions needs."""
    return new_session(f"local[{SLOTS}]", {"spark.python.task.killTimeout": f"{HELD_S}s"})


@contextmanager
def slots_held_after_cancellation(spark: SparkSession) -> Iterator[None]:
    """Tasks that ignore their cancellation for a while, as those of a stopped query can."""
    context = spark.sparkContext

    def run() -> None:
        context.setJobGroup("stopped", "a job whose tasks go on")
        # Py4J hands the cancellation to this thread in one form or another; the tasks go on either way.
        with suppress(Py4JError, PySparkException):
            context.parallelize(range(SLOTS), SLOTS).map(lambda _: time.sleep(600)).collect()  # noqa: TID251

    job = threading.Thread(target=run)
    job.start()
    until(lambda: busy_slots(spark) == SLOTS, "all slots are busy")
    context.cancelJobGroup("stopped")
    job.join()
    assert until(lambda: canceled_tasks(spark), "canceled tasks that still run") == {"driver": SLOTS}
    yield
    until(lambda: not busy_slots(spark), "the slots are free again")


def test_the_first_row_does_not_wait_for_the_end_of_the_epoch(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.send(range(4))
    with pipeline.running(pipeline.rows(), epoch=EPOCH), pipeline.collect() as out:
        until(lambda: len(out.rows()) == 4, "rows of the first query")
    pipeline.use_fresh_output(tmp_path / "another")
    with pipeline.running(pipeline.rows(), epoch=EPOCH), pipeline.collect() as out:
        until(lambda: len(out.rows()) == 4, "rows of the second query")


def test_a_start_waits_for_canceled_tasks(pipeline: Pipeline) -> None:
    pipeline.send(range(4))
    with (
        slots_held_after_cancellation(pipeline.spark),
        pipeline.running(pipeline.rows(), epoch=EPOCH),
        pipeline.collect() as out,
    ):
        assert not canceled_tasks(pipeline.spark), "started before the slots were free"
        until(lambda: len(out.rows()) == 4, "rows")


def test_a_start_does_not_wait_for_ever(pipeline: Pipeline) -> None:
    pipeline.spark.conf.set(WAIT_KEY, "200ms")
    try:
        with slots_held_after_cancellation(pipeline.spark), pytest.raises(NotReadyError) as refused:
            pipeline.running(pipeline.rows(), epoch=EPOCH).__enter__()
    finally:
        pipeline.spark.conf.unset(WAIT_KEY)
    assert refused.value.code == "TAILRACE_SLOTS_NOT_RELEASED"
    assert f"{SLOTS} on executor driver" in refused.value.problem


def test_a_wrong_wait_is_refused(pipeline: Pipeline) -> None:
    pipeline.spark.conf.set(WAIT_KEY, "soon")
    try:
        with pytest.raises(TailraceError) as refused:
            pipeline.running(pipeline.rows(), epoch=EPOCH).__enter__()
    finally:
        pipeline.spark.conf.unset(WAIT_KEY)
    assert refused.value.code == "TAILRACE_BAD_SETTING"
