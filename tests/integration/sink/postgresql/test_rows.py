"""`tailrace-postgresql`: rows are appended or upserted, in transactions as large as the load."""

from __future__ import annotations

import json

from pyspark.sql import functions as F

import tailrace
from tailrace import EmbeddedPostgres
from tests.helpers.pipeline import Pipeline
from tests.helpers.postgres import SOON_S, Table
from tests.helpers.waiting import until


def test_rows_are_appended(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, "id bigint, key text, noted timestamptz DEFAULT now()")
    with table.running(pipeline, pipeline.rows().select("id", "key")):
        pipeline.send(range(100))
        table.wait_for(100)
    assert table.ids() == list(range(100))
    assert table.select("key", "WHERE id = 13") == [("k3",)]
    assert table.select("count(noted)") == [("100",)]


def test_the_last_row_of_a_key_wins(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, "key text PRIMARY KEY, \"Last Id\" bigint, kept text DEFAULT 'kept'", keys="key")
    # All of them wait when the query starts: keys occur many times in a transaction.
    pipeline.send(range(3000), keys=7)
    rows = pipeline.rows().select("key", F.col("id").alias("Last Id"))
    with table.running(pipeline, rows) as query:
        expected = sorted((f"k{key}", str(max(range(key, 3000, 7))), "kept") for key in range(7))
        until(lambda: sorted(table.select()) == expected, "the last row of each key", within_s=SOON_S)
        assert table.transactions(query) < 1500, "rows were not written together"


def test_a_single_row_is_written_at_once(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, "id bigint")
    with table.running(pipeline, pipeline.rows().select("id")) as query:
        for number in range(3):
            pipeline.send(range(number, number + 1))
            table.wait_for(number + 1)
        assert table.transactions(query) == 3


def test_latency_ends_with_the_commit(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    table = Table(postgres, "id bigint")
    postgres.execute(
        f"CREATE FUNCTION slow_{table.name}() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END $$; "
        f"CREATE TRIGGER slow BEFORE INSERT ON {table.name} FOR EACH ROW EXECUTE FUNCTION slow_{table.name}()"
    )
    with table.running(pipeline, pipeline.rows().select("id")) as query:
        pipeline.send(range(1))
        until(lambda: table.ids() == [0], "the row", within_s=SOON_S)
        found = until(lambda: tailrace.latency(query).figure("acknowledgement"), "figures", within_s=SOON_S)
        whole = until(lambda: tailrace.latency(query).figure("end_to_end"), "figures", within_s=SOON_S)
    assert found.max_ms >= 295
    assert whole.max_ms >= found.max_ms


TYPES = {
    "flag": ("boolean", "true"),
    "small": ("smallint", "7"),
    "whole": ("integer", "-8"),
    "large": ("bigint", "9007199254740993"),
    "single": ("real", "1.5"),
    "twice": ("double precision", "2.25"),
    "exact": ("numeric(20,4)", "1234567890.1234"),
    "words": ("text", "a 'quoted' \"word\" \\ ünï"),
    "short": ("varchar(5)", "abc"),
    "padded": ("char(4)", "ab  "),
    "bytes": ("bytea", "\\x00ff10"),
    "day": ("date", "2024-02-29"),
    "moment": ("timestamptz", "2024-02-29 12:34:56.123456+00"),
    "local": ("timestamp", "0044-03-15 12:00:00 BC"),
    "document": ("jsonb", '{"a": [1, 2]}'),
    "number": ("uuid", "6f1c1f0e-8d3e-4b9e-9d6a-0a5f2f1c1f0e"),
    "mood": ("pg_temp_mood", "happy"),
    "tags": ("text[]", '{a,"b \\"c\\\\",NULL}'),
    "grid": ("integer[]", "{{1,2},{3,4}}"),
    "prices": ("numeric[]", "{1.50,NULL}"),
    "moments": ("timestamptz[]", '{"2024-02-29 12:34:56+00"}'),
    "nothing": ("integer", None),
}


def test_types_come_through(pipeline: Pipeline, postgres: EmbeddedPostgres) -> None:
    postgres.execute("CREATE TYPE pg_temp_mood AS ENUM ('happy', 'sad'); SET TIME ZONE 'UTC'")
    table = Table(postgres, ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items()))
    query = pipeline.rows().select(
        F.lit(True).alias("flag"),
        F.lit(7).cast("byte").alias("small"),
        F.lit(-8).alias("whole"),
        F.lit(9007199254740993).alias("large"),
        F.lit(1.5).cast("float").alias("single"),
        F.lit(2.25).alias("twice"),
        F.lit("1234567890.1234").cast("decimal(20, 4)").alias("exact"),
        F.lit("a 'quoted' \"word\" \\ ünï").alias("words"),
        F.lit("abc").alias("short"),
        F.lit("ab").alias("padded"),
        F.expr("X'00FF10'").alias("bytes"),
        F.lit("2024-02-29").cast("date").alias("day"),
        F.expr("TIMESTAMP'2024-02-29 12:34:56.123456Z'").alias("moment"),
        F.expr("TIMESTAMP_NTZ'-0043-03-15 12:00:00'").alias("local"),
        F.lit(json.dumps({"a": [1, 2]})).alias("document"),
        F.lit("6f1c1f0e-8d3e-4b9e-9d6a-0a5f2f1c1f0e").alias("number"),
        F.lit("happy").alias("mood"),
        F.expr("array('a', 'b \"c\\\\', CAST(NULL AS STRING))").alias("tags"),
        F.expr("array(array(1, 2), array(3, 4))").alias("grid"),
        F.expr("array(CAST(1.5 AS DECIMAL(5, 2)), NULL)").alias("prices"),
        F.expr("array(TIMESTAMP'2024-02-29 12:34:56Z')").alias("moments"),
        F.expr("CAST(NULL AS INT)").alias("nothing"),
    )
    with table.running(pipeline, query):
        pipeline.send(range(1))
        [found] = until(lambda: table.select(", ".join(TYPES)), "the row", within_s=SOON_S)
    shown = dict(zip(TYPES, found, strict=True))
    assert shown == {name: {"flag": "t"}.get(name, value) for name, (_, value) in TYPES.items()}
