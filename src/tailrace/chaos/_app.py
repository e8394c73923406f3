"""The driver under test: all chosen workloads as queries of one session, so one fault hits them all.

Runs as a process of its own (`python -m tailrace.chaos._app`), which the harness kills and starts again. A query that
ends while the driver lives is started again here, from its checkpoint, as a supervisor would.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tailrace.chaos._events import tell
from tailrace.chaos._owner import end_with_owner
from tailrace.chaos._settings import Settings, checkpoint_of
from tailrace.chaos.workloads import WORKLOADS, read, write
from tailrace.errors import TailraceError
from tailrace.session import configure

LOOK_EVERY_S = 0.2
AGAIN_AFTER_S = 1.0


def main() -> None:
    settings = Settings.from_json(sys.argv[1])
    end_with_owner(Path(settings.folder))
    tell("process")
    spark = _session(settings)
    tell("session")
    queries: dict[str, StreamingQuery | None] = {}
    for name in settings.outputs:
        queries[name] = _start(spark, settings, name)
    tell("queries")
    while True:
        time.sleep(LOOK_EVERY_S)
        for name, query in queries.items():
            if query is not None and query.isActive:
                continue
            if query is not None:
                tell("ended", query=name, reason=_reason(query.exception()))
            else:
                time.sleep(AGAIN_AFTER_S)
            queries[name] = _start(spark, settings, name)


def _session(settings: Settings) -> SparkSession:
    builder = (
        SparkSession.builder.master(settings.master)
        .appName("tailrace chaos")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", str(Path(settings.folder) / "spark"))
        .config("spark.sql.shuffle.partitions", str(settings.shuffle_partitions))
    )
    if not settings.warm_up:
        builder = builder.config("spark.tailrace.warmup.epochs", "0")
    return configure(builder).getOrCreate()


def _start(spark: SparkSession, settings: Settings, name: str) -> StreamingQuery | None:
    workload, _, sink = name.partition("/")
    wanted = WORKLOADS[workload]
    rows = wanted.query(
        *(read(spark, settings.bootstrap_servers, settings.input_topic) for _ in range(wanted.readings))
    )
    checkpoint = str(checkpoint_of(Path(settings.folder), name))
    writer = write(rows, sink, settings.bootstrap_servers, settings.outputs[name], checkpoint).queryName(name)
    try:
        writer = writer.trigger(realTime=f"{settings.epoch_s} seconds")  # type: ignore[call-overload]  # not in PySpark's hints
        query: StreamingQuery = writer.start()
    except Exception as failure:
        # A broker that is away or a disk that is full: it will be tried again.
        tell("refused", query=name, reason=_reason(failure))
        return None
    tell("started", query=name)
    return query


def _reason(failure: Exception | None) -> str:
    if isinstance(failure, TailraceError):
        return str(failure)
    return next(iter(str(failure).splitlines()), "") if failure is not None else "it stopped by itself"


if __name__ == "__main__":
    main()
