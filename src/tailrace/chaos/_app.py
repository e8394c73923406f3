"""The driver under test: all wanted queries in one session, so one fault hits them all.

Runs as a process of its own (`python -m tailrace.chaos._app`), which the harness kills and starts again. A file says
which queries are wanted (`_settings.write_wanted`): the driver stops, starts and changes them as it says. A query that
ends while the driver lives is started again here, from its checkpoint, as a supervisor would.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tailrace.chaos._events import tell
from tailrace.chaos._owner import end_with_owner
from tailrace.chaos._settings import DriverSettings, WantedQuery, read_wanted
from tailrace.chaos.workloads import POSTGRESQL, REDIS, QueryName, read, rows_of, write
from tailrace.errors import TailraceError
from tailrace.session import configure

LOOK_EVERY_S = 0.1
AGAIN_AFTER_S = 1.0
WARM_UP = "spark.tailrace.warmup.epochs"


def main() -> None:
    settings = DriverSettings.from_json(sys.argv[1])
    folder = Path(settings.folder)
    end_with_owner(folder)
    tell("process")
    queries = Queries(_session(settings), settings)
    tell("session")
    queries.follow(read_wanted(folder))
    tell("queries")
    while True:
        time.sleep(LOOK_EVERY_S)
        queries.follow(read_wanted(folder))


def _session(settings: DriverSettings) -> SparkSession:
    builder = (
        SparkSession.builder.master(settings.master)
        .appName("tailrace chaos")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", str(Path(settings.folder) / "spark"))
        .config("spark.sql.shuffle.partitions", str(settings.shuffle_partitions))
    )
    stores = settings.stores
    return configure(builder, postgresql_driver=POSTGRESQL in stores, redis_client=REDIS in stores).getOrCreate()


class Queries:
    """The queries of this driver, as they are and as they should be."""

    def __init__(self, spark: SparkSession, settings: DriverSettings) -> None:
        self._spark = spark
        self._settings = settings
        self._running: dict[str, tuple[WantedQuery, StreamingQuery]] = {}
        self._again_at: dict[str, float] = {}

    def follow(self, wanted: dict[str, WantedQuery]) -> None:
        """Stop what is not wanted any more, or not in this form; start what is wanted and does not run."""
        self._stop([name for name, (spec, _) in self._running.items() if wanted.get(name) != spec])
        for name, (_, query) in list(self._running.items()):
            if not query.isActive:
                tell("ended", query=name, reason=_reason(query.exception()))
                del self._running[name]
        for name, spec in wanted.items():
            if name not in self._running and time.monotonic() >= self._again_at.get(name, 0):
                self._start(name, spec)

    def _stop(self, names: list[str]) -> None:
        if not names:
            return
        # At once: each waits for its tasks to end.
        with ThreadPoolExecutor(len(names)) as threads:
            list(threads.map(lambda name: self._running[name][1].stop(), names))
        for name in names:
            del self._running[name]
            tell("stopped", query=name)

    def _start(self, name: str, spec: WantedQuery) -> None:
        parsed, servers = QueryName.parse(name), self._settings.bootstrap_servers
        try:
            self._spark.conf.unset(WARM_UP) if spec.warm_up else self._spark.conf.set(WARM_UP, "0")
            rows = rows_of(parsed, spec.version, lambda: read(self._spark, servers, spec.input_topic))
            options = spec.sink_options or {"kafka.bootstrap.servers": servers, "topic": spec.output_topic}
            writer = write(rows, parsed.sink, options, spec.checkpoint).queryName(name)
            writer = writer.trigger(realTime=f"{spec.epoch_s} seconds")  # type: ignore[call-overload]  # not in PySpark's hints
            self._running[name] = (spec, writer.start())
        except Exception as failure:
            # A broker that is away or a disk that is full: it will be tried again.
            self._again_at[name] = time.monotonic() + AGAIN_AFTER_S
            tell("refused", query=name, reason=_reason(failure))
            return
        tell("started", query=name)


def _reason(failure: Exception | None) -> str:
    if failure is None:
        return "it stopped by itself"
    coded = TailraceError.find_in(str(failure))
    return str(coded) if coded is not None else next(iter(str(failure).splitlines()), "")


if __name__ == "__main__":
    main()
