"""What an application under `tailrace run` reports to its supervisor: JSON files in a folder private to the user."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from tailrace.contract.codec import to_json
from tailrace.contract.run_folder import (
    DashboardReport,
    ExitReport,
    FailureReport,
    LastRun,
    PartitionOffset,
    StartedQueries,
    StartedQuery,
)
from tailrace.contract.snapshot import QueryFigures, Snapshot

FOLDER_VARIABLE = "TAILRACE_RUN_FOLDER"
DASHBOARD, QUERIES, FAILURE, EXIT = "dashboard.json", "queries.json", "failure.json", "exit.json"
LONGEST_MESSAGE = 100_000

logger = logging.getLogger(__name__)
# The latest run of each query, by its id: a query may be started again many times.
_queries: dict[str, StartedQuery] = {}
_snapshot: Callable[[], Snapshot] | None = None


def is_supervised() -> bool:
    return FOLDER_VARIABLE in os.environ


def report_dashboard(url: str, token: str) -> None:
    """Where the supervisor asks for the queries' health, and the token that it needs to drain them."""
    _write(DASHBOARD, DashboardReport(url, token))


def report_query(query: StreamingQuery) -> None:
    """A query that was started. The supervisor looks in its checkpoint for what will be replayed."""
    if not is_supervised():
        return
    try:
        checkpoint = str(query._jsq.streamingQuery().resolvedCheckpointRoot())
    except Exception:
        logger.debug("The checkpoint of %s is unknown", query.name, exc_info=True)
        checkpoint = ""
    _queries[str(query.id)] = StartedQuery(query.name, str(query.id), str(query.runId), checkpoint)
    _write(QUERIES, StartedQueries(tuple(_queries.values())))


def report_exit(snapshot: Callable[[], Snapshot]) -> None:
    """From now on, report the exception that ends the script, and the state of its queries when the process exits."""
    global _snapshot
    is_first, _snapshot = _snapshot is None, snapshot
    if not is_supervised() or not is_first:
        return
    before = sys.excepthook

    def hook(kind: type[BaseException], failure: BaseException, trace: TracebackType | None) -> None:
        _write(FAILURE, FailureReport(kind.__name__, str(failure)[:LONGEST_MESSAGE]))
        before(kind, failure, trace)

    sys.excepthook = hook
    atexit.register(_report_final_queries)


def _report_final_queries() -> None:
    # The JVM may already be gone.
    with contextlib.suppress(Exception):
        if _snapshot is not None:
            _write(EXIT, ExitReport(tuple(map(last_run_of, _snapshot().queries))))


def last_run_of(query: QueryFigures) -> LastRun:
    return LastRun(
        name=query.name,
        id=query.id,
        run_id=query.run_id,
        status=query.status,
        error=query.error[:LONGEST_MESSAGE] if query.error else None,
        started_at=query.started_at,
        partitions=tuple(PartitionOffset(one.topic, one.partition, one.offset) for one in query.partitions),
    )


def _write(name: str, content: Any) -> None:
    """Write the file atomically. Failures are only logged: the supervisor may be gone."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder is None:
        return
    try:
        handle, written = tempfile.mkstemp(dir=folder)  # readable only by this user, from the first byte
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(to_json(content))
        Path(written).replace(Path(folder) / name)
    except OSError:
        logger.debug("%s could not be written for the supervisor", name, exc_info=True)
