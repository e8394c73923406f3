"""What an application under `tailrace run` tells its supervisor: notes in a folder that only their user can read."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

FOLDER_VARIABLE = "TAILRACE_RUN_FOLDER"
DASHBOARD, QUERIES, FAILURE, END = "dashboard.json", "queries.json", "failure.json", "end.json"
LONGEST_MESSAGE = 100_000

logger = logging.getLogger(__name__)
_queries: dict[str, dict[str, Any]] = {}
_snapshot: Callable[[], dict[str, Any]] | None = None


def is_supervised() -> bool:
    return FOLDER_VARIABLE in os.environ


def note_dashboard(url: str, token: str) -> None:
    """Where the supervisor asks how the queries are, and what it needs to drain them."""
    _note(DASHBOARD, {"url": url, "token": token})


def note_query(query: StreamingQuery) -> None:
    """A query that was started, with its checkpoint: the supervisor looks there for what is replayed."""
    if not is_supervised():
        return
    try:
        checkpoint = str(query._jsq.streamingQuery().resolvedCheckpointRoot())
    except Exception:
        logger.debug("The checkpoint of %s is not known", query.name, exc_info=True)
        checkpoint = ""
    _queries[str(query.runId)] = {
        "name": query.name,
        "id": str(query.id),
        "run_id": str(query.runId),
        "checkpoint": checkpoint,
    }
    _note(QUERIES, list(_queries.values()))


def tell_how_it_ends(snapshot: Callable[[], dict[str, Any]]) -> None:
    """Leave notes of the exception that ends the script, and of the queries when the process ends."""
    global _snapshot
    is_first, _snapshot = _snapshot is None, snapshot
    if not is_supervised() or not is_first:
        return
    before = sys.excepthook

    def hook(kind: type[BaseException], failure: BaseException, trace: TracebackType | None) -> None:
        _note(FAILURE, {"type": kind.__name__, "message": str(failure)[:LONGEST_MESSAGE]})
        before(kind, failure, trace)

    sys.excepthook = hook
    atexit.register(_note_the_end)


def _note_the_end() -> None:
    # There may be no JVM any more that could be asked.
    with contextlib.suppress(Exception):
        if _snapshot is not None:
            _note(END, [_how_it_was(query) for query in _snapshot()["queries"]])


def _how_it_was(query: dict[str, Any]) -> dict[str, Any]:
    kept = {key: query[key] for key in ("name", "id", "run_id", "status")}
    error = query["error"]
    read_to = [{key: one[key] for key in ("topic", "partition", "offset")} for one in query["partitions"]]
    return {**kept, "error": error[:LONGEST_MESSAGE] if error else None, "read_to": read_to}


def _note(name: str, content: Any) -> None:
    """Whole or not at all; that there is no supervisor, or none any more, is no harm."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder is None:
        return
    try:
        handle, written = tempfile.mkstemp(dir=folder)  # private from the first byte on
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file)
        Path(written).replace(Path(folder) / name)
    except OSError:
        logger.debug("The note %s could not be left", name, exc_info=True)
