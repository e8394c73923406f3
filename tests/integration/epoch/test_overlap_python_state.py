"""Epochs of queries with `transformWithState` in Python overlap: state, timers and times to live go on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import tailrace
from tests.helpers.overlapping import (
    OVERLAP_KEY,
    SHORT_EPOCHS,
    SOON_S,
    assert_gap_free,
    assert_in_order,
    collected,
    is_parked,
    loaded,
    nothing_is_left,
    overlapped,
)
from tests.helpers.pipeline import Pipeline
from tests.helpers.processors import COUNTED, Announced, CountingForAWhile, CountingFrames, Ticking, counted
from tests.helpers.topics import new_topic
from tests.helpers.waiting import until

# Long enough to be planned ahead on a busy machine.
EPOCH = "3 seconds"
LONG_EPOCH = "6 seconds"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
TICK_MS = 250
TTL_MS = 4000


@pytest.fixture
def pipeline(pipeline: Pipeline) -> Pipeline:
    """With an output of one partition, which keeps the order in which rows are written."""
    pipeline.output = new_topic(pipeline.servers, "out", partitions=1)
    return pipeline


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    # Micro-batches of `transformWithState` need it to be set.
    return new_session("local[16]", {**SHORT_EPOCHS, "spark.sql.streaming.stateStore.providerClass": ROCKSDB})


def in_rows(pipeline: Pipeline) -> DataFrame:
    return pipeline.processed_counts()


def in_frames(pipeline: Pipeline) -> DataFrame:
    keyed: Any = pipeline.rows().groupBy("key")
    result: DataFrame = keyed.transformWithStateInPandas(CountingFrames(), COUNTED, "Update", "None")
    return result


def last_counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {row["key"]: row["n"] for row in rows}


def by_key(rows: list[dict[str, Any]], column: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(row["key"], []).append(row[column])
    return found


def assert_steps_by_one(rows: list[dict[str, Any]]) -> None:
    for key, counts in by_key(rows, "n").items():
        assert counts == list(range(1, len(counts) + 1)), key


def counted_in_micro_batches(pipeline: Pipeline, query: DataFrame, sent: int, checkpoint: Path) -> dict[str, int]:
    """The last counts of the same input, by Spark itself."""
    pipeline.checkpoint, pipeline.output = checkpoint, new_topic(pipeline.servers, "out", partitions=1)
    with collected(pipeline) as out, pipeline.running(query, epoch=None) as running:
        until(lambda: len(out.rows()) == sent or running.exception(), "everything is counted", within_s=SOON_S)
    return last_counts(out.rows())


@pytest.mark.parametrize("query_of", [in_rows, in_frames])
def test_a_processor_counts_as_in_micro_batch(
    pipeline: Pipeline, query_of: Callable[[Pipeline], DataFrame], tmp_path: Path
) -> None:
    query = query_of(pipeline)
    with collected(pipeline) as out, loaded(pipeline) as load:
        with pipeline.running(query, epoch=EPOCH) as running:
            until(out.rows, "rows are out", within_s=SOON_S)
            until(lambda: overlapped(running) >= 4, "four boundaries overlapped", within_s=SOON_S)
            load.stop()
            until(lambda: len(out.rows()) >= load.sent, "all rows are out")
            tailrace.drain(running, timeout_s=SOON_S)
            assert_gap_free(running, pipeline)
        rows = out.rows()
    assert len(rows) == load.sent
    assert_steps_by_one(rows)
    assert_in_order(pipeline, rows, within="key")
    assert last_counts(rows) == counted_in_micro_batches(pipeline, query, load.sent, tmp_path / "micro-batch")


def test_timers_go_on_across_boundaries(pipeline: Pipeline) -> None:
    """No row comes after the first ones: from then on, each timer is set by the one before it."""
    keyed: Any = pipeline.rows().groupBy("key")
    ticks = keyed.transformWithState(
        Ticking(TICK_MS), "key STRING, n LONG, due LONG, fired LONG", "Update", "ProcessingTime"
    )
    pipeline.send(range(10))
    with collected(pipeline) as out, pipeline.running(ticks, epoch=LONG_EPOCH) as running:
        until(out.rows, "timers fire", within_s=SOON_S)
        until(lambda: overlapped(running) >= 2, "two boundaries overlapped", within_s=SOON_S)
        ticks_so_far = len(out.rows())
        until(lambda: len(out.rows()) >= ticks_so_far + 30, "timers still fire")
        tailrace.drain(running, timeout_s=SOON_S)
        rows = out.rows()
    assert_steps_by_one(rows)
    assert len(by_key(rows, "n")) == 10
    for dues in by_key(rows, "due").values():
        assert all(after == before + TICK_MS for before, after in pairwise(dues))
    assert all(row["fired"] >= row["due"] for row in rows)
    # Those that an epoch has set for the next one. Timers fire at the end of an epoch in any case.
    late_ms = sorted(row["fired"] - row["due"] for row in rows[ticks_so_far:])
    assert late_ms[len(late_ms) // 2] < 1000, "timers wait for the end of the epoch"


def test_a_time_to_live_goes_on_across_boundaries(pipeline: Pipeline) -> None:
    query = counted(pipeline.rows(), CountingForAWhile(TTL_MS), time_mode="ProcessingTime")
    with collected(pipeline) as out, loaded(pipeline) as load, pipeline.running(query, epoch=EPOCH) as running:
        until(out.rows, "rows are out", within_s=SOON_S)
        until(lambda: overlapped(running) >= 3, "boundaries overlapped", within_s=SOON_S)
        load.stop()
        until(lambda: len(out.rows()) >= load.sent, "all rows are out")
        assert_steps_by_one(out.rows())
        over_s = time.time() + TTL_MS / 1000
        until(lambda: time.time() > over_s, "the state has lived its time")
        pipeline.send(range(load.sent, load.sent + 10))
        until(lambda: len(out.rows()) >= load.sent + 10, "the last rows are out")
        assert [row["n"] for row in out.rows()[load.sent :]] == [1] * 10


def test_the_next_processor_is_initialized_while_it_waits(pipeline: Pipeline, tmp_path: Path) -> None:
    """A stop leaves neither its worker nor that of the running epoch behind."""
    query = counted(pipeline.rows(), Announced(tmp_path))
    pipeline.send(range(20))
    with collected(pipeline) as out:
        with pipeline.running(query, epoch=LONG_EPOCH) as running:
            until(lambda: is_parked(running), "the next epoch waits", within_s=SOON_S)
            # One more was initialized by Spark itself, to learn the state's schema.
            until(lambda: len(Announced.worker_pids(tmp_path)) == 5, "both epochs are initialized")
            assert overlapped(running) == 0
        until(lambda: nothing_is_left(pipeline.spark) and not threads_left(pipeline.spark), "nothing is left")
        workers = Announced.worker_pids(tmp_path)[1:]
        until(lambda: not any(map(psutil.pid_exists, workers)), "the workers are gone")
        with pipeline.running(query, epoch="10 minutes"):
            until(lambda: len(out.rows()) >= 40, "the next run reads what was not committed")
        assert last_counts(out.rows()) == {f"k{number}": 2 for number in range(10)}


def threads_left(spark: SparkSession) -> list[str]:
    jvm: Any = spark._jvm
    threads = [str(thread.getName()) for thread in jvm.java.lang.Thread.getAllStackTraces().keySet()]
    return [name for name in threads if name.startswith(("tailrace-state-server", "tailrace-python-feeder"))]


def test_workers_are_used_again(pipeline: Pipeline, tmp_path: Path) -> None:
    """Two for each partition: that of the epoch that runs, and that of the epoch that waits."""
    query = counted(pipeline.rows(), Announced(tmp_path))
    with loaded(pipeline), pipeline.running(query, epoch=EPOCH) as running:
        until(lambda: pipeline.log("commits"), "epochs", within_s=SOON_S)
        until(lambda: overlapped(running) >= 5, "boundaries overlapped", within_s=SOON_S)
        workers = Announced.worker_pids(tmp_path)[1:]
    assert len(workers) >= 10
    # If a worker has not come back when the next epoch asks, there is another one.
    assert len(set(workers)) <= 6


def test_an_init_that_fails_while_the_epoch_waits(pipeline: Pipeline, tmp_path: Path) -> None:
    """The epoch that runs is committed. The next one begins after it, and fails for the same reason."""
    query = counted(pipeline.rows(), Announced(tmp_path))
    pipeline.send(range(20))
    with (  # noqa: PT012
        pytest.raises(StreamingQueryException, match="init fails"),
        pipeline.running(query, epoch=LONG_EPOCH) as running,
    ):
        until(lambda: len(Announced.worker_pids(tmp_path)) >= 3, "the first epoch runs")
        (tmp_path / "fail").touch()
        running.awaitTermination(2 * SOON_S)
    assert pipeline.log("commits") == pipeline.log("offsets") == [0]
    until(lambda: nothing_is_left(pipeline.spark) and not threads_left(pipeline.spark), "nothing is left")


def test_a_drain_while_the_next_epoch_waits_for_its_state(pipeline: Pipeline) -> None:
    query = in_rows(pipeline)
    with collected(pipeline) as out, loaded(pipeline) as load:
        for _ in range(2):
            with pipeline.running(query, epoch=LONG_EPOCH) as running:
                until(lambda: is_parked(running), "the next epoch waits", within_s=SOON_S)
                drained = tailrace.drain(running, timeout_s=SOON_S)
                assert pipeline.log("commits")[-1] == drained.epoch
        load.stop()
        with pipeline.running(query, epoch="10 minutes"):
            until(lambda: len(out.rows()) >= load.sent, "all rows are out")
        # Nothing was replayed.
        assert len(out.rows()) == load.sent
        assert_steps_by_one(out.rows())
    until(lambda: nothing_is_left(pipeline.spark) and not threads_left(pipeline.spark), "nothing is left")


def test_an_epoch_that_continued_from_other_state_is_not_committed(pipeline: Pipeline) -> None:
    """What Spark committed is changed while the epoch after it runs, so the two do not meet."""
    pipeline.send(range(20))
    with (  # noqa: PT012
        pytest.raises(StreamingQueryException, match="TAILRACE_EPOCHS_DO_NOT_MEET"),
        pipeline.running(in_rows(pipeline), epoch=LONG_EPOCH) as query,
    ):
        until(lambda: pipeline.log("commits"), "epochs", within_s=SOON_S)
        until(lambda: overlapped(query) >= 1, "epochs overlap", within_s=SOON_S)

        def has_failed() -> bool:
            # Again, in case that an epoch was just being committed.
            query._jsq.streamingQuery().lastExecution().currentStateStoreCkptId().apply(0)[0][0] = "another"
            return query.exception() is not None

        until(has_failed, "the query fails", within_s=SOON_S)
    failed = query._jsq.streamingQuery().lastExecution().currentBatchId()
    assert max(pipeline.log("offsets")) == max(pipeline.log("commits")) == failed - 1
    until(lambda: nothing_is_left(pipeline.spark) and not threads_left(pipeline.spark), "nothing is left")


def test_the_checkpoint_goes_to_micro_batches_and_back(pipeline: Pipeline) -> None:
    """Runs end without a drain, so each one reads again what the one before has not committed."""
    query = in_rows(pipeline)
    runs: list[tuple[str | None, str]] = [(EPOCH, "auto"), (None, "auto"), (EPOCH, "auto"), (EPOCH, "off")]
    with collected(pipeline) as out, loaded(pipeline) as load:
        for epoch, overlap in runs:
            pipeline.spark.conf.set(OVERLAP_KEY, overlap)
            with pipeline.running(query, epoch=epoch) as running:
                before = max(pipeline.log("commits"), default=-1)
                until(lambda: max(pipeline.log("commits"), default=-1) > before + 2, "epochs", within_s=SOON_S)  # noqa: B023
                if epoch and overlap == "auto":
                    until(lambda: overlapped(running) >= 2, "epochs overlap", within_s=SOON_S)
        pipeline.spark.conf.set(OVERLAP_KEY, "auto")
        load.stop()
        expected = Counter(f"k{number % 10}" for number in range(load.sent))
        with pipeline.running(query, epoch=EPOCH):
            until(lambda: last_counts(out.rows()) == expected, "all rows are counted once", within_s=SOON_S)
