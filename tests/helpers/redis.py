"""A query that writes to keys of Redis."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace import EmbeddedRedis
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import until

SINK = "tailrace-redis"
# No test waits for its end.
EPOCH = "10 minutes"
SOON_S = 60


class Keys:
    """Fresh keys, and queries from a pipeline's input topic to them."""

    def __init__(self, redis: EmbeddedRedis, structure: str, key: str = "{id}", **options: str) -> None:
        self.redis = redis
        self.query: StreamingQuery | None = None
        self.prefix = f"t{uuid.uuid4().hex[:8]}:"
        self.options = {"structure": structure, "key": f"{self.prefix}{key}", **options}

    def key(self, name: object = "") -> str:
        return f"{self.prefix}{name}"

    def names(self) -> list[str]:
        found = self.redis.execute("KEYS", f"{self.prefix}*")
        return sorted(str(name).removeprefix(self.prefix) for name in found)

    def hash(self, name: object = "") -> dict[str, str]:
        flat = self.redis.execute("HGETALL", self.key(name))
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def stream(self, name: object = "") -> list[dict[str, str]]:
        entries = self.redis.execute("XRANGE", self.key(name), "-", "+")
        return [dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in entries]

    def ids(self, name: object = "") -> list[int]:
        """The column `id` of all entries of a stream."""
        return sorted(int(entry["id"]) for entry in self.stream(name))

    def added(self, name: object = "") -> int:
        """How many entries a stream has got, with those that were trimmed."""
        facts = self.redis.execute("XINFO", "STREAM", self.key(name))
        return int(dict(zip(facts[::2], facts[1::2], strict=True))["entries-added"])

    def wait_for(self, entries: int, name: object = "") -> None:
        def are_there() -> bool:
            if self.query is not None and (failure := self.query.exception()) is not None:
                raise failure
            return int(self.redis.execute("XLEN", self.key(name))) >= entries

        until(are_there, f"{entries} entries", within_s=SOON_S)

    def batches(self, query: StreamingQuery) -> int:
        """How many batches the journal holds: those of the open epochs."""
        state = f"tailrace:{{{query.id}}}"
        journals = [f"{state}:journal:{epoch}" for epoch in self.redis.execute("SMEMBERS", f"{state}:epochs")]
        entries = [entry for journal in journals for entry in self.redis.execute("LRANGE", journal, 0, -1)]
        return sum(1 for entry in entries if entry)

    def writer(self, pipeline: Pipeline, query: DataFrame, **options: str) -> DataStreamWriter:
        return (
            query.writeStream.format(SINK)
            .option("url", self.redis.url)
            .option("passwordFile", self.redis.password_file)
            .option("checkpointLocation", str(pipeline.checkpoint))
            .options(**self.options)
            .options(**options)
            .outputMode("update")
        )

    def started(self, pipeline: Pipeline, query: DataFrame, *, epoch: str = EPOCH, **options: str) -> StreamingQuery:
        writer = self.writer(pipeline, query, **options)
        self.query = writer.trigger(realTime=epoch).start()  # type: ignore[call-overload]
        assert self.query is not None
        return self.query

    @contextmanager
    def running(
        self, pipeline: Pipeline, query: DataFrame, *, epoch: str = EPOCH, **options: str
    ) -> Iterator[StreamingQuery]:
        started = self.started(pipeline, query, epoch=epoch, **options)
        try:
            yield started
        finally:
            failure = started.exception()
            started.stop()
            if failure is not None:
                raise failure
