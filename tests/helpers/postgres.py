"""A query that writes to a table of PostgreSQL."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace import EmbeddedPostgres
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import until

SINK = "tailrace-postgresql"
# No test waits for its end.
EPOCH = "10 minutes"
SOON_S = 60


class Table:
    """A fresh table, and queries from a pipeline's input topic to it."""

    def __init__(self, postgres: EmbeddedPostgres, columns: str, *, keys: str | None = None) -> None:
        self.postgres = postgres
        self.name = f"t_{uuid.uuid4().hex[:8]}"
        self.keys = keys
        postgres.execute(f"CREATE TABLE {self.name} ({columns})")

    def select(self, what: str = "*", rest: str = "") -> list[tuple[str | None, ...]]:
        return self.postgres.execute(f"SELECT {what} FROM {self.name} {rest}")

    def ids(self) -> list[int]:
        return sorted(int(row[0] or 0) for row in self.select("id"))

    def wait_for(self, rows: int) -> None:
        until(lambda: len(self.ids()) >= rows, f"{rows} rows", within_s=SOON_S)

    def transactions(self, query: StreamingQuery) -> int:
        """How many transactions the journal holds: those of the open epoch."""
        [[count]] = self.postgres.execute(f"SELECT count(*) FROM tailrace_journal WHERE query = '{query.id}'")
        return int(count or 0)

    def writer(self, pipeline: Pipeline, query: DataFrame, **options: str) -> DataStreamWriter:
        writer = (
            query.writeStream.format(SINK)
            .option("url", self.postgres.url)
            .option("user", self.postgres.user)
            .option("passwordFile", self.postgres.password_file)
            .option("dbtable", self.name)
            .option("checkpointLocation", str(pipeline.checkpoint))
            .outputMode("update")
        )
        if self.keys is not None:
            writer = writer.option("keyColumns", self.keys)
        return writer.options(**options)

    @contextmanager
    def running(
        self, pipeline: Pipeline, query: DataFrame, *, epoch: str = EPOCH, **options: str
    ) -> Iterator[StreamingQuery]:
        writer = self.writer(pipeline, query, **options).trigger(realTime=epoch)  # type: ignore[call-overload]
        started = writer.start()
        try:
            yield started
        finally:
            failure = started.exception()
            started.stop()
            if failure is not None:
                raise failure
