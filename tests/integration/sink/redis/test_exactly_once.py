"""`tailrace-redis`: whatever ends a run, each row is in Redis once, and no aggregate steps back."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tailrace
from tailrace import EmbeddedRedis
from tests.helpers.pipeline import Pipeline
from tests.helpers.redis import SOON_S, Keys
from tests.helpers.topics import ContinuousLoad
from tests.helpers.waiting import let_pass, until

RUNS = 2

Outage = Callable[[], object]


@pytest.fixture
def own_redis() -> Iterator[EmbeddedRedis]:
    """One that a test may stop."""
    with EmbeddedRedis() as server:
        yield server


def passed_on(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().select("id", F.lit(0).alias("part"))


def exploded_and_shuffled(pipeline: Pipeline) -> DataFrame:
    parts = F.explode(F.array(F.lit(1), F.lit(2), F.lit(2)))
    return pipeline.rows().select("id", parts.alias("part")).repartition(2, "part")


@pytest.mark.parametrize("query_of", [passed_on, pytest.param(exploded_and_shuffled, marks=pytest.mark.chaos)])
def test_each_row_is_added_once(
    pipeline: Pipeline, redis: EmbeddedRedis, query_of: Callable[[Pipeline], DataFrame]
) -> None:
    events = Keys(redis, "stream", "")
    copies = 3 if query_of is exploded_and_shuffled else 1
    with ContinuousLoad(pipeline.servers, pipeline.input, per_second=200) as load:
        for _ in range(RUNS):
            with events.running(pipeline, query_of(pipeline)):
                events.wait_for(len(events.ids()) + 150)
        load.stop()
        with events.running(pipeline, query_of(pipeline)):
            until(lambda: len(set(events.ids())) == load.sent, "all rows", within_s=SOON_S)
            events.wait_for(copies * load.sent)
    assert events.ids() == sorted(list(range(load.sent)) * copies)


def test_no_aggregate_steps_back(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    # A stream for each key tells what was written; in the sorted set only the last value would be seen.
    history = Keys(redis, "stream", "{key}")
    counts = pipeline.rows().groupBy("key").agg(F.count("*").alias("n"))

    def steps() -> list[list[int]]:
        return [[int(entry["n"]) for entry in history.stream(name)] for name in history.names()]

    def counted() -> int:
        return sum(max(of_key) for of_key in steps())

    with ContinuousLoad(pipeline.servers, pipeline.input, per_second=200) as load:
        for _ in range(RUNS):
            with history.running(pipeline, counts):
                goal = counted() + 150
                until(lambda goal=goal: counted() >= goal, "more counts", within_s=SOON_S)  # type: ignore[misc]
        load.stop()
        with history.running(pipeline, counts):
            until(lambda: counted() == load.sent, "everything is counted", within_s=SOON_S)
    assert all(of_key == list(range(1, len(of_key) + 1)) for of_key in steps()), "an update came twice, or not at all"


def survives(pipeline: Pipeline, server: EmbeddedRedis, outages: Iterable[tuple[Outage, Outage]]) -> None:
    """Rows flow while the server is away, and each is there once."""
    events = Keys(server, "stream", "")
    with (
        ContinuousLoad(pipeline.servers, pipeline.input, per_second=200) as load,
        events.running(pipeline, pipeline.rows().select("id")),
    ):
        for end, begin in outages:
            events.wait_for(len(events.ids()) + 100)
            end()
            begin()
        load.stop()
        until(lambda: len(set(events.ids())) == load.sent, "all rows", within_s=SOON_S)
    assert events.ids() == list(range(load.sent))


def test_rows_survive_a_server_that_restarts(pipeline: Pipeline, own_redis: EmbeddedRedis) -> None:
    survives(pipeline, own_redis, [(own_redis.kill, own_redis.start), (own_redis.shut_down, own_redis.start)])


@pytest.mark.chaos
def test_rows_survive_a_server_that_stands_still(pipeline: Pipeline, own_redis: EmbeddedRedis) -> None:
    """For so long that the client gives up, and sends again what the server has already received."""

    def stop() -> None:
        assert own_redis.pid is not None
        os.kill(own_redis.pid, signal.SIGSTOP)
        let_pass(25)

    def resume() -> None:
        assert own_redis.pid is not None
        os.kill(own_redis.pid, signal.SIGCONT)

    survives(pipeline, own_redis, [(stop, resume), (stop, resume)])


def test_a_newer_run_shuts_out_an_older_one(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    events = Keys(redis, "stream", "")
    older = events.started(pipeline, pipeline.rows().select("id"))
    pipeline.send(range(10))
    events.wait_for(10)
    # As a run on another machine claims the output. Spark itself refuses a second run within a session.
    redis.execute("HINCRBY", f"tailrace:{{{older.id}}}:run", "run", 1)
    redis.execute("DEL", f"tailrace:{{{older.id}}}:writers")
    pipeline.send(range(10, 20))
    failure = until(older.exception, "it ends", within_s=SOON_S)
    assert "[TAILRACE_NEWER_RUN]" in str(failure)
    assert events.ids() == list(range(10)), "a run that was shut out has written"


def test_a_server_that_lost_its_last_writes_gets_them_again(pipeline: Pipeline, own_redis: EmbeddedRedis) -> None:
    """As after a failover to a replica that was behind: the log of writes ends earlier."""
    events = Keys(own_redis, "stream", "")
    rows = pipeline.rows().select("id")
    log = next((Path(own_redis.password_file).parent / "data").rglob("*.incr.aof"))
    query = events.started(pipeline, rows)
    pipeline.send(range(10))
    events.wait_for(10)
    length = log.stat().st_size
    pipeline.send(range(10, 20))
    events.wait_for(20)
    own_redis.kill()
    os.truncate(log, length)
    own_redis.start()
    pipeline.send(range(20, 30))
    failure = until(query.exception, "it is noticed", within_s=SOON_S)
    assert "[TAILRACE_REDIS_WENT_BACK]" in str(failure)
    with events.running(pipeline, rows):
        events.wait_for(30)
    assert events.ids() == list(range(30))


def test_a_server_that_lost_a_committed_epoch_is_refused(pipeline: Pipeline, own_redis: EmbeddedRedis) -> None:
    events = Keys(own_redis, "stream", "")
    rows = pipeline.rows().select("id")
    with events.running(pipeline, rows) as query:
        pipeline.send(range(10))
        events.wait_for(10)
        tailrace.drain(query)
    assert pipeline.log("commits"), "nothing was committed"
    own_redis.execute("FLUSHALL")
    query = events.started(pipeline, rows)
    failure = until(query.exception, "it is noticed", within_s=SOON_S)
    assert "[TAILRACE_REDIS_LOST_ROWS]" in str(failure)
    with events.running(pipeline, rows, failOnDataLoss="false"):
        pipeline.send(range(10, 20))
        events.wait_for(10)
    assert events.ids() == list(range(10, 20))
