"""`tailrace-postgresql`: whatever ends a run, each row is in the table once, and no aggregate steps back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import udf

from tailrace import EmbeddedPostgres
from tests.helpers.pipeline import Pipeline
from tests.helpers.postgres import SOON_S, Table
from tests.helpers.topics import ContinuousLoad
from tests.helpers.waiting import until

RUNS = 2


def passed_on(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().select("id", F.lit(0).alias("part"))


def exploded_and_shuffled(pipeline: Pipeline) -> DataFrame:
    parts = F.explode(F.array(F.lit(1), F.lit(2), F.lit(2)))
    return pipeline.rows().select("id", parts.alias("part")).repartition(2, "part")


def not_deterministic(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().select("id", (F.rand() * 1000).cast("int").alias("part"))


def through_python(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().select("id", udf(lambda number: number % 5, "int")("id").alias("part"))


@pytest.mark.parametrize(
    "query_of",
    [passed_on, exploded_and_shuffled, not_deterministic, pytest.param(through_python, marks=pytest.mark.chaos)],
)
def test_each_row_is_appended_once(
    pipeline: Pipeline, postgres: EmbeddedPostgres, query_of: Callable[[Pipeline], DataFrame]
) -> None:
    table = Table(postgres, "id bigint, part int")
    copies = 3 if query_of is exploded_and_shuffled else 1
    with ContinuousLoad(pipeline.servers, pipeline.input, per_second=200) as load:
        for _ in range(RUNS):
            with table.running(pipeline, query_of(pipeline)):
                table.wait_for(len(table.ids()) + 150)
        load.stop()
        with table.running(pipeline, query_of(pipeline)):
            until(lambda: len(set(table.ids())) == load.sent, "all rows", within_s=SOON_S)
            until(lambda: len(table.ids()) >= copies * load.sent, "all copies", within_s=SOON_S)
    assert table.ids() == sorted(list(range(load.sent)) * copies)


HISTORY = """
CREATE TABLE history_{0} (position bigserial, key text, n bigint);
CREATE FUNCTION note_{0}() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO history_{0} (key, n) VALUES (NEW.key, NEW.n); RETURN NEW; END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON {0} FOR EACH ROW EXECUTE FUNCTION note_{0}()
"""


def test_no_aggregate_steps_back(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, "key text PRIMARY KEY, n bigint", keys="key")
    postgres.execute(HISTORY.format(table.name))
    counts = pipeline.rows().groupBy("key").agg(F.count("*").alias("n"))

    def counted() -> int:
        return int(table.select("coalesce(sum(n), 0)")[0][0] or 0)

    def wait_for(sum_of_counts: int) -> None:
        until(lambda: counted() >= sum_of_counts, "more counts", within_s=SOON_S)

    with ContinuousLoad(pipeline.servers, pipeline.input, per_second=200) as load:
        for _ in range(RUNS):
            with table.running(pipeline, counts):
                wait_for(counted() + 150)
        load.stop()
        with table.running(pipeline, counts):
            until(lambda: counted() == load.sent, "everything is counted", within_s=SOON_S)
    changes = postgres.execute(f"SELECT n - lag(n) OVER (PARTITION BY key ORDER BY position) FROM history_{table.name}")
    steps = [int(step) for (step,) in changes if step is not None]
    assert steps
    assert min(steps) > 0, "a value was written again, or stepped back"


def wait_for_load(load: ContinuousLoad, sent: int) -> None:
    until(lambda: load.sent >= sent, "rows while the server is away")


def test_rows_survive_a_server_that_restarts(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, "id bigint")
    with (
        ContinuousLoad(pipeline.servers, pipeline.input, per_second=200) as load,
        table.running(pipeline, pipeline.rows().select("id")),
    ):
        for end in (postgres.kill, postgres.shut_down):
            table.wait_for(len(table.ids()) + 100)
            end()
            wait_for_load(load, load.sent + 50)
            postgres.start()
        load.stop()
        until(lambda: len(set(table.ids())) == load.sent, "all rows", within_s=SOON_S)
    assert table.ids() == list(range(load.sent))


def test_a_newer_run_shuts_out_an_older_one(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, "id bigint")
    rows = pipeline.rows().select("id")
    older = table.writer(pipeline, rows).trigger(realTime="10 minutes").start()  # type: ignore[call-overload]
    pipeline.send(range(10))
    table.wait_for(10)
    # As a run on another machine claims the output. Spark itself refuses a second run within a session.
    of_query = f"WHERE query = '{older.id}'"
    postgres.execute(f"UPDATE tailrace_runs SET run = run + 1 {of_query}; DELETE FROM tailrace_writers {of_query}")
    pipeline.send(range(10, 20))
    failure = until(older.exception, "it ends", within_s=SOON_S)
    assert "[TAILRACE_NEWER_RUN]" in str(failure)
    assert table.ids() == list(range(10)), "a run that was shut out has written"


@pytest.mark.chaos
def test_the_journal_is_shortened(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, "id bigint")
    with table.running(pipeline, pipeline.rows().select("id"), epoch="5 seconds") as query:
        pipeline.send(range(10))
        until(lambda: len(table.ids()) == 10, "the rows", within_s=SOON_S)
        until(lambda: table.transactions(query) == 0, "the epoch is forgotten", within_s=SOON_S)
    with table.running(pipeline, pipeline.rows().select("id")):
        pipeline.send(range(10, 20))
        until(lambda: len(table.ids()) >= 20, "the rows", within_s=SOON_S)
    assert table.ids() == list(range(20))
