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
        until(lambda: len(table.ids()) >= 100, "all rows", within_s=SOON_S)
    assert table.ids() == list(range(100))
    assert table.select("key", "WHERE id = 13") == [("k3",)]
    assert table.select("count(noted)") == [("100",)]
