"""`tailrace-postgresql`: what is wrong with the table is said before the start, and bad rows go their way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import EmbeddedPostgres, TailraceError
from tailrace.contract.findings import Severity
from tests.helpers.pipeline import Pipeline
from tests.helpers.postgres import SOON_S, Table
from tests.helpers.topics import all_messages, new_topic
from tests.helpers.waiting import until

GOOD = "id bigint, key text"


@pytest.fixture(scope="module")
def guest(postgres: EmbeddedPostgres) -> Iterator[None]:
    """A user who may connect and nothing else."""
    postgres.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    yield
    postgres.execute("DROP OWNED BY guest; DROP ROLE guest")


def plain(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().select("id", "key")


def findings(table: Table, pipeline: Pipeline, query: DataFrame, **options: str) -> set[str]:
    """The blocking codes of the check, which are also those that `start()` raises."""
    writer = table.writer(pipeline, query, **options).trigger(realTime="10 minutes")  # type: ignore[call-overload]
    blocking = {found.code for found in tailrace.check(writer).of(Severity.BLOCKING)}
    with pytest.raises(TailraceError) as raised:
        writer.start()
    assert all(code in str(raised.value) for code in blocking)
    return blocking


@pytest.mark.parametrize(
    ("columns", "keys", "codes"),
    [
        ("id bigint", None, {"TAILRACE_SINK_COLUMN_MISSING"}),
        ("id text, key text", None, {"TAILRACE_SINK_COLUMN_TYPE"}),
        ("id bigint GENERATED ALWAYS AS IDENTITY, key text", None, {"TAILRACE_SINK_COLUMN_TYPE"}),
        (f"{GOOD}, more int NOT NULL", None, {"TAILRACE_SINK_COLUMN_REQUIRED"}),
        (GOOD, "id", {"TAILRACE_SINK_KEY_NOT_UNIQUE"}),
        (f"{GOOD}, UNIQUE (id, key)", "id", {"TAILRACE_SINK_KEY_NOT_UNIQUE"}),
        (f"{GOOD}, UNIQUE (id) DEFERRABLE", "id", {"TAILRACE_SINK_KEY_NOT_UNIQUE"}),
        (GOOD, "number", {"TAILRACE_SINK_COLUMN_MISSING"}),
        (
            "id text, more int NOT NULL",
            "key",
            {"TAILRACE_SINK_COLUMN_MISSING", "TAILRACE_SINK_COLUMN_TYPE", "TAILRACE_SINK_COLUMN_REQUIRED"},
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    pipeline: Pipeline, postgres: EmbeddedPostgres, columns: str, keys: str | None, codes: set[str]
) -> None:
    table = Table(postgres, columns, keys=keys)
    assert findings(table, pipeline, plain(pipeline)) == codes


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"dbtable": "nowhere"}, "TAILRACE_SINK_TABLE_MISSING"),
        ({"dbtable": "no table; at all"}, "TAILRACE_SINK_TABLE_MISSING"),
        ({"dbtable": "tailrace_view"}, "TAILRACE_SINK_TABLE_MISSING"),
        ({"url": "jdbc:postgresql://127.0.0.1:1/none"}, "TAILRACE_POSTGRESQL_UNREACHABLE"),
        ({"password": "wrong"}, "TAILRACE_POSTGRESQL_REFUSED"),
        ({"user": "guest", "password": "guest"}, "TAILRACE_SINK_RIGHTS_MISSING"),
        ({"stateSchema": "elsewhere"}, "TAILRACE_SINK_RIGHTS_MISSING"),
        ({"url": "jdbc:mysql://host/db"}, "TAILRACE_BAD_SINK_OPTION"),
        ({"url": "jdbc:postgresql://127.0.0.1/db?password=x"}, "TAILRACE_BAD_SINK_OPTION"),
        ({"url": ""}, "TAILRACE_BAD_SINK_OPTION"),
        ({"batchsize": "none"}, "TAILRACE_BAD_SINK_OPTION"),
        ({"retryTimeout": "soon"}, "TAILRACE_BAD_SINK_OPTION"),
        ({"passwordFile": "/nowhere/at/all"}, "TAILRACE_BAD_SINK_OPTION"),
    ],
)
@pytest.mark.usefixtures("guest")
def test_options_that_do_not_work_are_refused(
    pipeline: Pipeline, postgres: EmbeddedPostgres, options: dict[str, str], code: str
) -> None:
    postgres.execute("CREATE OR REPLACE VIEW tailrace_view AS SELECT 1::bigint AS id, ''::text AS key")
    table = Table(postgres, GOOD)
    assert findings(table, pipeline, plain(pipeline), **options) == {code}


def test_matches_of_two_streams_are_refused(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, GOOD)
    matches = plain(pipeline).join(pipeline.rows().select("id"), "id")
    assert "TAILRACE_NO_ROW_IDENTITY" in findings(table, pipeline, matches)


def test_a_table_that_fits_is_passed_with_its_guarantee(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, "id bigint PRIMARY KEY, key text", keys="id")
    writer = table.writer(pipeline, plain(pipeline)).trigger(realTime="10 minutes")  # type: ignore[call-overload]
    verdict = tailrace.check(writer)
    assert not verdict.blocked
    assert any(one.code == "TAILRACE_GUARANTEE" and "Exactly once" in one.detail for one in verdict.findings)


def is_alive(query: StreamingQuery) -> bool:
    """Raises what it died of."""
    if (failure := query.exception()) is not None:
        raise failure
    return True


BAD = {7, 13, 14}
CHECKED = "id bigint CHECK (id NOT IN (7, 13, 14)), key text"


@pytest.mark.parametrize("policy", ["dead-letter", "drop"])
def test_rejected_rows_leave_their_batch_alone(pipeline: Pipeline, postgres: EmbeddedPostgres, policy: str) -> None:
    table = Table(postgres, CHECKED)
    letters = new_topic(pipeline.servers, "dead")
    pipeline.send(range(40))
    with table.running(pipeline, plain(pipeline), onError=policy, deadLetterTopic=letters) as query:
        until(lambda: is_alive(query) and len(table.ids()) >= 40 - len(BAD), "the good rows", within_s=SOON_S)
        if policy == "dead-letter":
            until(lambda: len(all_messages(pipeline.servers, letters)) == len(BAD), "the letters", within_s=SOON_S)
    assert table.ids() == sorted(set(range(40)) - BAD)


def test_a_rejected_row_is_named(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, CHECKED)
    started = table.writer(pipeline, plain(pipeline)).trigger(realTime="10 minutes").start()  # type: ignore[call-overload]
    pipeline.send(range(6, 8))
    # No other row follows.
    text = str(until(started.exception, "it fails", within_s=SOON_S))
    assert "[TAILRACE_ROW_REJECTED]" in text
    assert pipeline.input in text
    assert 7 not in table.ids()


def test_two_keys_that_only_the_server_takes_for_one(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    """In a column of fixed length, spaces at the end do not count."""
    table = Table(postgres, "name char(4) PRIMARY KEY, id bigint", keys="name")
    pipeline.send(range(100), keys=1)
    name = F.when(F.col("id") % 2 == 0, "a").otherwise("a ")
    with table.running(pipeline, pipeline.rows().select(name.alias("name"), "id")):
        until(lambda: table.select("id") == [("99",)], "the last row", within_s=SOON_S)


def test_a_checkpoint_that_is_too_old_is_refused(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, GOOD)
    with table.running(pipeline, plain(pipeline)) as query:
        pipeline.send(range(1))
        table.wait_for(1)
    # As if a newer copy of the checkpoint had got much further.
    postgres.execute(f"UPDATE tailrace_runs SET kept_from = 1000 WHERE query = '{query.id}'")
    writer = table.writer(pipeline, plain(pipeline)).trigger(realTime="10 minutes")  # type: ignore[call-overload]
    again = writer.start()
    failure = until(again.exception, "it fails", within_s=SOON_S)
    assert "[TAILRACE_CHECKPOINT_TOO_OLD]" in str(failure)


def test_no_secret_is_shown(pipeline: Pipeline, postgres: EmbeddedPostgres, capfd: pytest.CaptureFixture[str]) -> None:
    table = Table(postgres, GOOD)
    # Where the driver logs to: pytest gave it a file.
    log = Path(f"/proc/{pipeline.spark.sparkContext._gateway.proc.pid}/fd/2")  # type: ignore[union-attr]
    logged_before = log.stat().st_size
    secret = str(postgres.password)
    options = {"password": secret, "passwordFile": ""}
    pipeline.spark.sparkContext.setLogLevel("INFO")
    try:
        with table.running(pipeline, plain(pipeline), **options) as query:
            pipeline.send(range(3))
            until(lambda: len(table.ids()) == 3, "the rows", within_s=SOON_S)
            query.explain(extended=True)
            shown = [str(query.lastProgress), query._jsq.toString()]
            verdict = tailrace.check(table.writer(pipeline, plain(pipeline), **options))
            shown += [repr(verdict), str(verdict), repr(verdict.findings)]
            shown += [file.read_text(errors="replace") for file in pipeline.checkpoint.rglob("*") if file.is_file()]
            shown += [Path(f"/proc/{pid}/cmdline").read_text() for pid in processes()]
    finally:
        pipeline.spark.sparkContext.setLogLevel("OFF")
    logged = log.read_bytes()[logged_before:].decode(errors="replace")
    assert str(query.id) in logged, "nothing was logged"
    plan = capfd.readouterr().out
    assert "Logical Plan" in plan
    assert [text for text in [*shown, plan, logged] if secret in text] == []


def processes() -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (folder / "cmdline").exists():
            yield int(folder.name)
