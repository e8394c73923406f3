"""The real deduplicator, in a JVM that answers one replay after the other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.unit.sink.rows import Answer, Decided, Decision, Replay, Row, Written

ROOT = Path(__file__).resolve().parents[3]
MAIN = "org.apache.spark.sql.tailrace.sink.dedup.AnswerReplays"


class RealDeduplicator:
    def __init__(self) -> None:
        java = subprocess.run(
            [sys.executable, str(ROOT / "jvm" / "test.py"), "--command", MAIN],
            capture_output=True,
            text=True,
            check=True,
        )
        command = json.loads(java.stdout.splitlines()[-1])
        self._jvm = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> RealDeduplicator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._jvm.stdin is not None
        self._jvm.stdin.close()
        self._jvm.wait(timeout=300)

    def decide(self, replay: Replay) -> Answer:
        request = {
            "stateful": replay.stateful,
            "ordered": replay.ordered,
            "sameQuery": replay.same_query,
            "task": replay.task,
            "epoch": replay.epoch,
            "written": [_written(one) for one in replay.written],
            "rows": [
                _row(row, replay.compacted, expecting=at < replay.expecting) for at, row in enumerate(replay.rows)
            ],
        }
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.write(json.dumps(request) + "\n")
        self._jvm.stdin.flush()
        answer = json.loads(self._jvm.stdout.readline())
        return Answer(_decided(replay, answer["decided"]), _decided(replay, answer["finished"]))


def _decided(replay: Replay, found: list[list[Any]]) -> tuple[Decided, ...]:
    return tuple(Decided(replay.rows[at], Decision(decision), *rest) for at, decision, *rest in found)


def _row(row: Row, compacted: bool, *, expecting: bool = False) -> dict[str, Any]:
    identity = row.identity
    return {
        "madeByTime": identity is None,
        "epoch": row.epoch,
        "expectsOthers": expecting,
        "source": identity.source if identity else -1,
        "partition": identity.partition if identity else row.task,
        "offset": identity.offset if identity else -1,
        "ordinal": identity.ordinal if identity else 0,
        "hasKey": row.key is not None,
        "key": row.key or "",
        "content": row.content,
        "compacted": compacted and row.key is not None,
    }


def _written(one: Written) -> dict[str, Any]:
    return {
        "row": _row(one.row, False),
        "attempt": one.attempt,
        "task": one.task,
        "sequence": one.sequence,
        "at": one.offset,
    }
