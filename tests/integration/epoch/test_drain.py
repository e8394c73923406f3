"""A drained query has committed everything it read: the next run repeats nothing and misses nothing."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import EmbeddedKafka, TailraceError
from tailrace._process import dashboards
from tailrace._process.machine_load import stretched
from tailrace._process.paths import state_folder
from tailrace.supervise.remote import drain_at
from tests.helpers.pipeline import Pipeline, has_counted
from tests.helpers.processes import tailrace as tailrace_cli
from tests.helpers.topics import ContinuousLoad
from tests.helpers.waiting import until

# No test waits for its end.
EPOCH = "10 minutes"
# Separates an epoch that was ended from one that was waited for.
SOON_S = 300


def passed_on(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows()


def through_python(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().withColumn("key", udf(lambda key: key + "!")("key"))


def shuffled(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().repartition(2, "key")


def first_seen(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().dropDuplicates(["id"])


@pytest.mark.parametrize("query_of", [passed_on, through_python, shuffled, first_seen])
def test_a_restart_repeats_nothing_and_misses_nothing(
    pipeline: Pipeline, query_of: Callable[[Pipeline], DataFrame]
) -> None:
    with pipeline.collect() as out, ContinuousLoad(pipeline.servers, pipeline.input, per_second=200) as load:
        for _ in range(3):
            with pipeline.running(query_of(pipeline), epoch=EPOCH) as query:
                so_far = len(out.rows())
                until(lambda: len(out.rows()) > so_far + 100, "rows flow")  # noqa: B023
                drained = tailrace.drain(query, timeout_s=stretched(SOON_S))
                assert not query.isActive
                assert query.exception() is None
                assert pipeline.log("commits")[-1] == drained.epoch
        load.stop()
        with pipeline.running(query_of(pipeline), epoch=EPOCH):
            until(lambda: len(out.rows()) >= load.sent, "all rows are out")
            assert Counter(row["id"] for row in out.rows()) == Counter(range(load.sent))


def test_counts_go_on_where_they_ended(pipeline: Pipeline) -> None:
    with pipeline.collect() as out:
        for run in (1, 2, 3):
            pipeline.send(range(20 * (run - 1), 20 * run), keys=1)
            with pipeline.running(pipeline.counts(), epoch=EPOCH) as query:
                until(has_counted(out, 20 * run), f"{20 * run} rows counted")
                tailrace.drain(query, timeout_s=stretched(SOON_S))
        assert Counter(row["n"] for row in out.rows()) == Counter(range(1, 61)), "each row was counted once"


def test_stop_stays_as_spark_has_it(pipeline: Pipeline) -> None:
    """The reason for draining, and the test of the tests above."""
    pipeline.send(range(20))
    with pipeline.collect() as out:
        for run in (1, 2):
            with pipeline.running(pipeline.rows(), epoch=EPOCH):
                until(lambda: len(out.rows()) >= 20 * run, "rows are out")  # noqa: B023
        assert Counter(Counter(row["id"] for row in out.rows()).values()) == {2: 20}


def test_an_idle_query_ends_at_once(pipeline: Pipeline) -> None:
    with pipeline.running(pipeline.rows(), epoch=EPOCH) as query:
        tailrace.drain(query, timeout_s=stretched(SOON_S))
        assert not query.isActive


def test_other_queries_go_on(pipeline: Pipeline, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    other = Pipeline(pipeline.spark, kafka, tmp_path / "other")
    with pipeline.running(pipeline.rows(), epoch=EPOCH) as drained, other.running(other.rows(), epoch=EPOCH) as query:
        tailrace.drain(drained, timeout_s=stretched(SOON_S))
        with other.collect() as out:
            other.send(range(10))
            until(lambda: len(out.rows()) == 10, "the other still flows")
        assert query.isActive
        assert other.log("commits") == []


def test_a_query_that_is_not_done_in_time_goes_on(pipeline: Pipeline) -> None:
    with pipeline.collect() as out, pipeline.running(pipeline.rows(), epoch=EPOCH) as query:
        pipeline.send(range(10))
        until(lambda: len(out.rows()) == 10, "rows flow")
        with pytest.raises(TailraceError, match="it keeps running") as refused:
            tailrace.drain(query, timeout_s=0)
        assert refused.value.code == "TAILRACE_DRAIN_TIMEOUT"
        pipeline.send(range(10, 20))
        until(lambda: len(out.rows()) == 20, "rows flow again")
        assert query.isActive


def test_a_query_that_fails_meanwhile_says_why(pipeline: Pipeline) -> None:
    def slow_and_bad(value: str) -> str:
        import time

        time.sleep(2)  # noqa: TID251 (a user's slow function)
        raise ValueError("no such key")

    broken = pipeline.rows().withColumn("key", udf(slow_and_bad)("key"))
    with pytest.raises(StreamingQueryException), pipeline.running(broken, epoch=EPOCH) as query:  # noqa: PT012
        pipeline.send(range(1))
        until(lambda: rows_in(query) > 0, "the row is in the function")
        with pytest.raises(TailraceError) as refused:
            tailrace.drain(query, timeout_s=stretched(SOON_S))
        assert refused.value.code == "TAILRACE_DRAIN_FAILED"


def rows_in(query: StreamingQuery) -> int:
    return int(tailrace.latency(query).to_dict()["windows"]["run"]["rows_in"])


def test_a_query_that_has_ended(pipeline: Pipeline) -> None:
    with pipeline.running(pipeline.rows(), epoch=EPOCH) as query:
        query.stop()
        with pytest.raises(TailraceError, match="is not running") as refused:
            tailrace.drain(query)
        assert refused.value.code == "TAILRACE_NOTHING_TO_DRAIN"


def test_a_micro_batch_query(pipeline: Pipeline) -> None:
    with pipeline.running(pipeline.rows(), epoch=None) as query:
        with pytest.raises(TailraceError, match="Real-Time Mode") as refused:
            tailrace.drain(query)
        assert refused.value.code == "TAILRACE_NOTHING_TO_DRAIN"


def test_from_the_command_line(pipeline: Pipeline) -> None:
    with pipeline.collect() as out, pipeline.running(pipeline.rows(), epoch=EPOCH) as query:
        pipeline.send(range(10))
        until(lambda: len(out.rows()) == 10, "rows flow")
        with tailrace.dashboard(pipeline.spark) as served:
            done = tailrace_cli("drain", served.url, "--json")
            assert done.returncode == 0, done.stderr
            (drained,) = json.loads(done.stdout)
            assert drained["run_id"] == query.runId
            assert not query.isActive
            nothing_left = tailrace_cli("drain", served.url)
            assert nothing_left.returncode == 1
            assert "TAILRACE_NOTHING_TO_DRAIN" in nothing_left.stderr
    assert pipeline.log("commits")[-1] == drained["epoch"]


def test_only_with_the_token(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pipeline.running(pipeline.rows(), epoch=EPOCH) as query,
        tailrace.dashboard(pipeline.spark) as served,
    ):
        monkeypatch.setenv("TAILRACE_TOKEN", "a guess")
        with pytest.raises(TailraceError) as refused:
            drain_at(served.url, None, SOON_S)
        assert refused.value.code == "TAILRACE_TOKEN_REFUSED"
        # What another page could make a browser send.
        for headers in ({}, {"authorization": "Bearer "}, {"authorization": "Basic x"}):
            request = urllib.request.Request(served.url + "api/drain", data=b"{}", headers=headers)
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(request, timeout=60)
        assert query.isActive
        (note,) = state_folder("dashboards").glob("*.json")
        assert note.stat().st_mode & 0o077 == 0, "others can read the token"
        assert (
            json.loads(note.read_text())["token"]
            not in urllib.request.urlopen(served.url + "api/snapshot").read().decode()
        )


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"timeout_s": "soon"}', b"x" * 20_000])
def test_requests_that_make_no_sense(pipeline: Pipeline, body: bytes) -> None:
    with tailrace.dashboard(pipeline.spark) as served:
        (known,) = [one for one in dashboards.find() if one.url == served.url]
        request = urllib.request.Request(
            served.url + "api/drain", data=body, headers={"authorization": f"Bearer {known.token}"}
        )
        with pytest.raises(urllib.error.HTTPError, match=r"400|413"):
            urllib.request.urlopen(request, timeout=60)


def test_nobody_there() -> None:
    done = tailrace_cli("drain", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert "TAILRACE_DASHBOARD_UNREACHABLE" in done.stderr
