"""A store that commits slowly is named, and one that answers at once is not."""

from __future__ import annotations

from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import EmbeddedPostgres
from tests.helpers.pipeline import Pipeline
from tests.helpers.postgres import Table
from tests.helpers.slow_stores import slow_commits
from tests.helpers.topics import ContinuousLoad
from tests.helpers.waiting import until
from tests.integration.monitor.queries import recorded

CODE = "TAILRACE_SLOW_STORE"
SOON_S = 300


def is_found(query: StreamingQuery) -> bool:
    return CODE in {finding.code for finding in tailrace.latency(query).findings}


def test_slow_commits_of_postgresql_are_named(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, "id bigint")
    with (
        table.running(pipeline, pipeline.rows().select("id")) as query,
        ContinuousLoad(pipeline.servers, pipeline.input, per_second=50),
    ):

        def is_healthy() -> bool:
            report = tailrace.latency(query)
            return recorded(report, "acknowledgement") > 100 and not is_found(query)

        until(is_healthy, "a store that is not slow", within_s=SOON_S)
        with slow_commits(postgres, table.name):
            until(lambda: is_found(query), CODE, within_s=SOON_S)
        [found] = [finding for finding in tailrace.latency(query).findings if finding.code == CODE]
        assert "PostgreSQL" in found.title
