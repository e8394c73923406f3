"""What Real-Time Mode promises, tested on a real broker, in one JVM and on two executors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import Collector, new_topic
from tests.helpers.waiting import comparing_times, until

# Separates "flows" from "waits for the epoch's end": epochs here last a minute unless said otherwise.
LONG_EPOCH = "10 minutes"


@pytest.fixture(scope="module", params=["local[6]", pytest.param("local-cluster[2,3,1024]", marks=pytest.mark.chaos)])
def spark(request: pytest.FixtureRequest, new_session: Callable[[str], SparkSession]) -> SparkSession:
    return new_session(request.param)


def ids_in(collector: Collector) -> set[int]:
    return {row["id"] for row in collector.rows()}


def final_counts(collector: Collector) -> dict[str, int]:
    """The highest count of each key: there is no order between the output's partitions."""
    result: dict[str, int] = {}
    for row in collector.rows():
        result[row["key"]] = max(result.get(row["key"], 0), row["n"])
    return result


def arrived(collector: Collector, number: int) -> Callable[[], bool]:
    return lambda: number in ids_in(collector)


def test_records_flow_while_the_epoch_stands_still(pipeline: Pipeline) -> None:
    with pipeline.collect() as out, pipeline.running(pipeline.rows(), epoch=LONG_EPOCH) as query:
        for number in range(5):
            pipeline.send(range(number, number + 1))
            until(arrived(out, number), f"row {number} within the first epoch")
            assert query.lastProgress is None, "an epoch ended: this test would prove nothing"


def test_two_stages_run_at_the_same_time(pipeline: Pipeline) -> None:
    status = pipeline.spark.sparkContext._jsc.sc().statusStore()

    def busy_stages() -> int:
        stages = status.activeStages()
        active = [stages.apply(position) for position in range(stages.size())]
        return sum(stage.numActiveTasks() == stage.numTasks() == 2 for stage in active)

    with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch=LONG_EPOCH):
        pipeline.send(range(10))
        until(lambda: len(out.rows()) == 10, "ten updates")
        # Spark's own status is told of tasks a moment after they started.
        until(lambda: busy_stages() == 2, "both stages with all their tasks running")


def shuffle_files(spark: SparkSession) -> list[Path]:
    local_dir = spark.sparkContext.getConf().get("spark.local.dir")
    return list(Path(local_dir or "").rglob("shuffle_*"))


def test_no_shuffle_file_is_written(pipeline: Pipeline, tmp_path: Path) -> None:
    already = set(shuffle_files(pipeline.spark))
    with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch=LONG_EPOCH):
        pipeline.send(range(50))
        until(lambda: len(out.rows()) == 50, "an update for each row")
        assert set(shuffle_files(pipeline.spark)) - already == set()
    # The control: the same query as micro-batch does write some, so the look above was at the right place.
    pipeline.checkpoint = tmp_path / "micro-batch"
    with pipeline.running(pipeline.counts(), epoch=None) as query:
        query.processAllAvailable()
        assert set(shuffle_files(pipeline.spark)) - already != set()


@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
def test_offsets_are_committed_after_the_epoch_and_not_before(pipeline: Pipeline, stateful: bool) -> None:
    query = pipeline.counts() if stateful else pipeline.rows()
    with pipeline.collect() as out, pipeline.running(query, epoch=LONG_EPOCH) as started:
        pipeline.send(range(20))
        until(lambda: ids_in(out) == set(range(20)), "the rows")
        logged = pipeline.log("offsets") + pipeline.log("commits")
        assert started.lastProgress is None, "an epoch ended: this test would prove nothing"
        assert logged == []
    with pipeline.running(query, epoch="5 seconds"):
        until(lambda: 0 in pipeline.log("commits"), "the first epoch's commit")
        offsets = json.loads((pipeline.checkpoint / "offsets" / "0").read_text().splitlines()[2])
        assert sum(offsets[pipeline.input].values()) == 20


@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
def test_a_restart_in_the_middle_of_an_epoch_loses_nothing(pipeline: Pipeline, stateful: bool) -> None:
    query = pipeline.counts() if stateful else pipeline.rows()
    with pipeline.collect() as out:
        with pipeline.running(query, epoch=LONG_EPOCH) as started:
            pipeline.send(range(100))
            until(lambda: ids_in(out) >= set(range(100)), "the rows before the stop")
            assert started.lastProgress is None
        pipeline.send(range(100, 150))
        with pipeline.running(query, epoch=LONG_EPOCH):
            pipeline.send(range(150, 200))
            until(lambda: ids_in(out) >= set(range(200)), "all rows")
            if stateful:
                # Exactly-once state: the replayed epoch is counted once.
                assert set(final_counts(out).values()) == {20}


def test_the_duration_is_a_checkpoint_cadence(pipeline: Pipeline, tmp_path: Path) -> None:
    def run(epoch: str, first: int) -> tuple[int, float]:
        """How many epochs were committed while twelve seconds passed, and the median latency."""
        pipeline.checkpoint = tmp_path / epoch
        pipeline.input, pipeline.output = new_topic(pipeline.servers, "in"), new_topic(pipeline.servers, "out")
        with pipeline.collect() as out, pipeline.running(pipeline.rows(), epoch=epoch):
            sent = first
            pipeline.send(range(sent, sent + 1))
            until(arrived(out, first), "the first row")
            begun = out.collected[-1].at_ns
            out.collected.clear()
            while not out.collected or out.collected[-1].at_ns < begun + 12e9:
                sent += 1
                pipeline.send(range(sent, sent + 1))
                until(arrived(out, sent), "the next row")
            latencies = sorted(collected.latency_s for collected in out.collected)
            return len(pipeline.log("commits")), latencies[len(latencies) // 2]

    short_commits, short_latency_s = run("5 seconds", first=0)
    long_commits, long_latency_s = run(LONG_EPOCH, first=1_000_000)
    assert short_commits >= 2
    assert long_commits == 0
    with comparing_times():
        # Twelve times the duration: were it the latency, the medians would be seconds and a minute.
        assert short_latency_s < 1
        assert long_latency_s < 1


def test_final_counts_equal_micro_batch(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.send(range(500), keys=37)
    with pipeline.collect() as real_time, pipeline.running(pipeline.counts(), epoch="10 seconds"):
        pipeline.send(range(500, 1000), keys=37)
        until(lambda: len(real_time.rows()) >= 1000, "an update for each row")
    pipeline.checkpoint, pipeline.output = tmp_path / "micro-batch", new_topic(pipeline.servers, "out")
    with pipeline.collect() as micro_batch, pipeline.running(pipeline.counts(), epoch=None) as query:
        query.processAllAvailable()
        until(lambda: len({row["key"] for row in micro_batch.rows()}) == 37, "all keys")
    assert final_counts(real_time) == final_counts(micro_batch)
    assert sum(final_counts(micro_batch).values()) == 1000
