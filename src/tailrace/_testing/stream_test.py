"""A query whose sources and clock a test controls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from tailrace._process.machine_load import stretched
from tailrace._process.temporary_folders import delete_folder, new_folder
from tailrace._spark.plugin import TESTING_PACKAGE, is_loaded, jvm_object
from tailrace._testing.results import DEADLINE_S, POLL_S, Results, too_slow
from tailrace._testing.source import Source
from tailrace.errors import ConfigurationError

Mode = Literal["real-time", "micro-batch"]
MODES: tuple[Mode, ...] = ("real-time", "micro-batch")

TICK_MS = 1
# After all rows are committed, in micro-batch.
MOST_BATCHES = 6
SETTINGS = {
    "spark.sql.streaming.realTimeMode.minBatchDuration": str(TICK_MS),
    # Spark sets this for real-time queries; in micro-batch, transformWithState needs it too.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
POLLS_PER_TICK = 10


class StreamTest:
    """A query whose sources and clock are controlled by a test. Only one can be open in a process.

    The clock starts at `start` and stands still, except for a few milliseconds in each `process()`. Processing-time
    timers and TTL follow this clock. Event time and watermarks follow the rows, as always.

    :param spark: a local session made with `tailrace.configure` or `tailrace.testing.session`.
    :param mode: "real-time" or "micro-batch".
    :param start: the time at which the clock starts.
    """

    def __init__(
        self,
        spark: SparkSession,
        mode: Mode = "real-time",
        *,
        start: datetime = datetime(2026, 1, 1, tzinfo=UTC),
    ) -> None:
        if mode not in MODES:
            raise ConfigurationError(
                "TAILRACE_TEST_MISUSED", f"there is no mode '{mode}'.", f"give one of {', '.join(MODES)}."
            )
        if not is_loaded(spark.sparkContext) or not str(spark.sparkContext.master).startswith("local["):
            raise ConfigurationError(
                "TAILRACE_TEST_MISUSED",
                "tests need a local session with Tailrace's plugin.",
                "use tailrace.testing.session(), or tailrace.configure(SparkSession.builder.master('local[8]')).",
            )
        self.spark = spark
        self.mode = mode
        self._sources: list[Source] = []
        self._rows: DataFrame | None = None
        self._running: Any = None
        self._folder = new_folder("test")
        self._clock = self._jvm("TestClock").install(int(start.timestamp() * 1000), str(self._folder / "clock"))
        if self._clock is None:
            delete_folder(self._folder)
            raise ConfigurationError(
                "TAILRACE_TEST_MISUSED",
                "another StreamTest is open in this process.",
                "close it first: use it in a with statement.",
            )

    def __enter__(self) -> StreamTest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the query and remove its files."""
        try:
            if self._running is not None:
                self._running.query().stop()
                self._running.forget()
                self._running = None
        finally:
            self._jvm("TestClock").uninstall()
            delete_folder(self._folder)

    @property
    def now(self) -> datetime:
        """The time on the test's clock."""
        return datetime.fromtimestamp(self._clock.getTimeMillis() / 1000, tz=UTC)

    def source(self, schema: str | StructType, partitions: int = 1) -> Source:
        """Create a source. Its `rows` is a DataFrame; its `add(…)` adds rows to it."""
        parsed = schema if isinstance(schema, StructType) else _struct(schema)
        jvm_source = self._jvm("TestSource")(self.spark._jsparkSession, parsed.json(), partitions, self._clock)
        self._sources.append(Source(self.spark, parsed, partitions, jvm_source))
        return self._sources[-1]

    def start(self, rows: DataFrame) -> Results:
        """Start the query in update mode and return its results."""
        if self._running is not None:
            raise ConfigurationError(
                "TAILRACE_TEST_MISUSED", "the test already has a query.", "use one StreamTest for each query."
            )
        self._rows = rows
        self._launch()
        return Results(self)

    def process(self) -> None:
        """Process and commit every row added so far, and fire whatever is due by the clock."""
        self._raise_failure()
        while not self._running.isCommitted():
            if self.mode == "real-time":
                # An epoch that has ended reads nothing more.
                self._wait(self._running.isRead, "the rows were not read")
            self._run_once()
        # Effects of the rows, such as a new watermark, apply from the next batch or epoch.
        self._run_once()
        if self.mode == "micro-batch":
            self._run_until_idle()

    def advance(
        self,
        by: timedelta | None = None,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> None:
        """Move the clock, as in `test.advance(minutes=10)`. Rows added earlier are processed first."""
        parts = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        self.process()
        self._clock.advance(int((by or parts).total_seconds() * 1000))
        self.process()

    def restart(self) -> None:
        """Stop the query and restart it from its checkpoint. What was not committed is read again."""
        self._raise_failure()
        self._running.query().stop()
        self._launch()

    def _launch(self) -> None:
        assert self._rows is not None
        # The query takes a copy of the session's settings.
        with _settings(self.spark, SETTINGS):
            self._running = self._jvm("TestedQuery")(
                self.spark._jsparkSession,
                self._rows._jdf,
                _java_list(self.spark, (source._jvm_source for source in self._sources)),
                self._clock,
                str(self._folder / "checkpoint"),
                self.mode == "real-time",
            )

    def _run_until_idle(self) -> None:
        """Until two ticks made no batch: Spark may have taken the first for one before it. Some queries never rest."""
        idle = 0
        for _ in range(MOST_BATCHES):
            before = self._running.currentBatch()
            self._run_once()
            idle = idle + 1 if self._running.currentBatch() == before else 0
            if idle == 2:
                return

    def _run_once(self) -> None:
        """One batch, or the rest of the open epoch."""
        before = self._running.currentBatch()
        self._clock.advance(TICK_MS)
        if self.mode == "real-time":
            # An epoch that was planned just after the clock moved needs another tick.
            self._wait(
                lambda: self._running.currentBatch() > before,
                "the epoch did not end",
                meanwhile=lambda: self._clock.advance(TICK_MS),
            )
        else:
            self._wait(self._clock.isWaitedFor, "the batch did not end")

    def _wait(
        self, condition: Callable[[], bool], otherwise: str, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        begun = time.monotonic()
        polls = 0
        while not condition():
            self._raise_failure()
            # Computed each time, because the load may have risen since the wait began.
            if time.monotonic() - begun > (deadline_s := stretched(DEADLINE_S)):
                raise too_slow(otherwise, deadline_s)
            time.sleep(POLL_S)
            polls += 1
            if polls % POLLS_PER_TICK == 0:
                meanwhile()

    def _raise_failure(self) -> None:
        if self._running is None:
            raise ConfigurationError("TAILRACE_TEST_MISUSED", "no query is running.", "start one: test.start(rows).")
        failure = StreamingQuery(self._running.query()).exception()
        if failure is not None:
            raise failure

    def _jvm(self, name: str) -> Any:
        return jvm_object(self.spark.sparkContext, f"{TESTING_PACKAGE}.{name}")


def _struct(ddl: str) -> StructType:
    parsed = StructType.fromDDL(ddl)
    assert isinstance(parsed, StructType)
    return parsed


@contextmanager
def _settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, earlier in before.items():
            if earlier is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, earlier)


def _java_list(spark: SparkSession, items: Iterable[Any]) -> Any:
    jvm: Any = spark._jvm
    made = jvm.java.util.ArrayList()
    for item in items:
        made.add(item)
    return made
