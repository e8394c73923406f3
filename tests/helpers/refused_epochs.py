"""`writeStream.foreach` whose `open()` returns False, over two epochs and a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tests.helpers.pipeline import Pipeline
from tests.helpers.waiting import stretched, until

EPOCH = "5 seconds"


class RefusingWriter:
    """Refuses an epoch that begins while a file exists, and notes what it does in another one."""

    def __init__(self, folder: Path) -> None:
        self.refuses = folder / "refuses"
        self.notes = folder / "notes"

    def open(self, partition_id: int, epoch_id: int) -> bool:
        takes = not self.refuses.exists()
        self._note(what="open", partition=partition_id, epoch=epoch_id, takes=takes)
        return takes

    def process(self, row: Row) -> None:
        self._note(what="process", id=row.id)

    def close(self, error: BaseException | None) -> None:
        self._note(what="close", error=None if error is None else str(error))

    def _note(self, **note: Any) -> None:
        with self.notes.open("a") as lines:
            lines.write(json.dumps(note) + "\n")

    def noted(self, what: str) -> list[dict[str, Any]]:
        notes = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [note for note in map(json.loads, notes) if note["what"] == what]


def committed_rows(pipeline: Pipeline) -> int:
    """The rows of all partitions up to the last committed offsets."""
    epochs = pipeline.log("commits")
    if not epochs:
        return 0
    offsets = json.loads((pipeline.checkpoint / "offsets" / str(epochs[-1])).read_text().splitlines()[2])
    return sum(int(offset) for offset in offsets[pipeline.input].values())


def start(pipeline: Pipeline, writer: RefusingWriter) -> StreamingQuery:
    stream: Any = pipeline.rows().writeStream.foreach(writer).outputMode("update")
    return stream.option("checkpointLocation", str(pipeline.checkpoint)).trigger(realTime=EPOCH).start()  # type: ignore[no-any-return]


def check_refused_epochs(pipeline: Pipeline, folder: Path) -> None:
    """Refused rows are dropped, their offsets are committed, and they do not come again."""
    writer = RefusingWriter(folder)
    writer.refuses.touch()
    query = start(pipeline, writer)

    def is_committed(rows: int) -> bool:
        if (failure := query.exception()) is not None:
            raise failure
        return committed_rows(pipeline) == rows

    pipeline.send(range(10))
    until(lambda: is_committed(10), "the first refused rows are committed")
    pipeline.send(range(10, 20))
    until(lambda: is_committed(20), "more of them, in a later epoch")
    assert writer.noted("process") == []

    writer.refuses.unlink()
    until(lambda: {note["partition"] for note in writer.noted("open") if note["takes"]} == {0, 1}, "rows are taken")
    pipeline.send(range(20, 30))
    until(lambda: is_committed(30), "the taken rows are committed")
    assert sorted(note["id"] for note in writer.noted("process")) == list(range(20, 30))
    # Not stopped: a worker that is about to open its epoch then would be ended before it closes it.
    tailrace.drain(query, timeout_s=stretched(120))

    query = start(pipeline, writer)
    pipeline.send(range(30, 40))
    until(lambda: is_committed(40), "rows after a restart")
    tailrace.drain(query, timeout_s=stretched(120))
    until(lambda: len(writer.noted("close")) == len(writer.noted("open")), "a close for each open")
    assert sorted(note["id"] for note in writer.noted("process")) == list(range(20, 40))
    assert {note["error"] for note in writer.noted("close")} == {None}
    refused = [(note["partition"], note["epoch"]) for note in writer.noted("open") if not note["takes"]]
    assert len(refused) == len(set(refused)), "a task was repeated"
