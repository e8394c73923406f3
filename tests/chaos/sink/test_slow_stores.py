"""A store that needs 200 ms for each commit: the source waits, memory stays flat, the finding names it, no row is lost.

`SLOW_STORE_SECONDS` in the environment makes it longer than a minute.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import EmbeddedPostgres, EmbeddedRedis
from tests.helpers.pipeline import Pipeline
from tests.helpers.postgres import Table
from tests.helpers.redis import Keys
from tests.helpers.slow_stores import paused_writes, slow_commits
from tests.helpers.topics import ContinuousLoad
from tests.helpers.waiting import let_pass, until

SECONDS = float(os.environ.get("SLOW_STORE_SECONDS", "60"))
SOON_S = 600
PER_SECOND = 300
# Two tasks with five commits a second each: less than is sent.
BATCH_ROWS = "10"
MOST_GROWTH_MB = 64


class SlowTable:
    def __init__(self, pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
        self._pipeline = pipeline
        self._table = Table(postgres, "id bigint")

    def running(self, rows: DataFrame) -> AbstractContextManager[StreamingQuery]:
        return self._table.running(self._pipeline, rows, batchsize=BATCH_ROWS)

    def slow(self) -> AbstractContextManager[None]:
        return slow_commits(self._table.postgres, self._table.name)

    def ids(self) -> list[int]:
        return self._table.ids()


class SlowStream:
    def __init__(self, pipeline: Pipeline, redis: EmbeddedRedis) -> None:
        self._pipeline = pipeline
        self._redis = redis
        self._keys = Keys(redis, "stream", "")

    def running(self, rows: DataFrame) -> AbstractContextManager[StreamingQuery]:
        return self._keys.running(self._pipeline, rows, batchsize=BATCH_ROWS)

    def slow(self) -> AbstractContextManager[None]:
        return paused_writes(self._redis)

    def ids(self) -> list[int]:
        return self._keys.ids()


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[6]", postgresql_driver=True, redis_client=True)


@contextmanager
def store_of(name: str, pipeline: Pipeline) -> Iterator[SlowTable | SlowStream]:
    if name == "postgresql":
        with EmbeddedPostgres() as postgres:
            yield SlowTable(pipeline, postgres)
    else:
        with EmbeddedRedis() as redis:
            yield SlowStream(pipeline, redis)


def used_mb(spark: SparkSession) -> float:
    jvm = spark._jvm
    assert jvm is not None
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


@pytest.mark.chaos
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", ["postgresql", "redis"])
def test_a_slow_store_slows_the_source_and_loses_nothing(name: str, pipeline: Pipeline, spark: SparkSession) -> None:
    with store_of(name, pipeline) as store, store.running(pipeline.rows().select("id")) as query:
        with ContinuousLoad(pipeline.servers, pipeline.input, per_second=PER_SECOND) as load:
            until(lambda: len(store.ids()) > 0, "the first rows", within_s=SOON_S)
            with store.slow():

                def lag() -> int:
                    return tailrace.latency(query).lag_rows or 0

                until(lambda: lag() > 10 * PER_SECOND, "a backlog", within_s=SOON_S)
                before, behind = used_mb(spark), lag()
                let_pass(SECONDS)
                assert lag() > behind
                assert used_mb(spark) < before + MOST_GROWTH_MB
                assert "TAILRACE_SLOW_STORE" in {finding.code for finding in tailrace.latency(query).findings}
            load.stop()
        until(lambda: len(store.ids()) >= load.sent, "all rows", within_s=SOON_S)
        assert sorted(store.ids()) == list(range(load.sent))
