"""What the rules of a check look at, gathered once: the plugin's description, settings, slots."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace._spark.plugin import jvm_object
from tailrace.check.description import QueryShape
from tailrace.check.slots import Slots, slots_of
from tailrace.contract.codec import from_json
from tailrace.contract.query_description import CheckpointDescription, QueryDescription, WriterDescription
from tailrace.monitor.live import session_of_this_process

DEFAULT_EPOCH_MS = 300_000
SAMPLE_MS = 500

Query = DataFrame | DataStreamWriter | StreamingQuery


@dataclass(frozen=True)
class Facts:
    """A query before its start."""

    described: QueryDescription
    settings: Settings
    slots: Slots
    running: Mapping[str, str] = field(default_factory=dict)
    """The other queries of the session that run now, by the id in their checkpoint: their names."""
    at_start: bool = False
    """The check is part of `start()`."""
    batch_ms: int | None = None
    """How long a batch takes, if it is a micro-batch query that runs."""

    @cached_property
    def shape(self) -> QueryShape:
        return QueryShape(self.described.stages, self.writer.format if self.writer else None, self.epoch_ms)

    @property
    def writer(self) -> WriterDescription | None:
        """What was set on the writer; None for a query whose sink is not known."""
        return self.described.writer

    @property
    def name(self) -> str:
        return self.sink_option("queryName") or "query"

    @property
    def is_named(self) -> bool:
        return self.sink_option("queryName") is not None

    @property
    def epoch_ms(self) -> int:
        return self.described.epoch_ms

    @property
    def stateful(self) -> bool:
        return self.described.stateful

    @property
    def checkpoint(self) -> CheckpointDescription | None:
        return self.described.checkpoint

    def sink_option(self, name: str) -> str | None:
        return option(self.writer.options, name) if self.writer else None


def option(options: Mapping[str, str], name: str) -> str | None:
    """Spark's option names are case-insensitive."""
    return next((value for key, value in options.items() if key.lower() == name.lower()), None)


class Settings:
    """What was set on a session, on its builder or with spark-submit."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    @classmethod
    def of(cls, spark: SparkSession) -> Settings:
        """All of them at once: a rule must not ask the JVM."""
        return cls(json.loads(preflight_of(spark).settingsOf(spark._jsparkSession)))

    def given(self, key: str) -> str | None:
        """The value, if one is set."""
        return self._given.get(key)

    def get(self, key: str, default: str) -> str:
        return self.given(key) or default

    def is_on(self, key: str) -> bool:
        return self.get(key, "false").strip().lower() == "true"


def facts_of(
    query: Query,
    *,
    epoch_ms: int = DEFAULT_EPOCH_MS,
    sample_ms: int = 0,
    at_start: bool = False,
    folder: Path | None = None,
) -> Facts:
    """Ask the plugin, the broker and the cluster. Nothing is started, and nothing is written.

    :param sample_ms: for how long to watch records come in, to see how old they are.
    :param folder: lines of files in it are named from there.
    """
    spark = session_of(query)
    text = _describe(preflight_of(spark), query, epoch_ms, sample_ms)
    local = text if folder is None else text.replace(f'"line":"{folder.absolute()}/', '"line":"')
    described = from_json(QueryDescription, local)
    running = {str(active.id): active.name or str(active.id) for active in spark.streams.active}
    # A query does not compete with itself, nor with the run that replaces it.
    replaced = _id_of(query, described, running)
    running.pop(str(query.id) if isinstance(query, StreamingQuery) else "", None)
    batch_ms = _median_batch_ms(query) if isinstance(query, StreamingQuery) else None
    return Facts(
        described, Settings.of(spark), slots_of(spark).without(replaced), running, at_start=at_start, batch_ms=batch_ms
    )


def _id_of(query: Query, described: QueryDescription, running: Mapping[str, str]) -> str | None:
    if isinstance(query, StreamingQuery):
        return str(query.id)
    query_id = described.checkpoint.query_id if described.checkpoint else None
    return query_id if query_id in running else None


def preflight_of(spark: SparkSession) -> Any:
    """The plugin's side of the check."""
    return jvm_object(spark.sparkContext, "org.apache.spark.sql.tailrace.preflight.Preflight")


def writer_options(writer: DataStreamWriter) -> Mapping[str, str]:
    return dict(json.loads(preflight_of(writer._spark).optionsOf(writer._jwrite)))


def session_of(query: Query) -> SparkSession:
    if isinstance(query, DataStreamWriter):
        return query._spark
    return query.sparkSession if isinstance(query, DataFrame) else session_of_this_process()


def _describe(preflight: Any, query: Query, epoch_ms: int, sample_ms: int) -> str:
    if isinstance(query, DataStreamWriter):
        return str(preflight.ofWriter(query._jwrite, epoch_ms, sample_ms))
    if isinstance(query, DataFrame):
        return str(preflight.ofQuery(query._jdf, epoch_ms, sample_ms))
    return str(preflight.ofRunning(query._jsq, epoch_ms, sample_ms))


def _median_batch_ms(query: StreamingQuery) -> int | None:
    taken = [progress.durationMs.get("triggerExecution") for progress in query.recentProgress if progress.numInputRows]
    known = [duration for duration in taken if duration is not None]
    return round(statistics.median(known)) if known else None
