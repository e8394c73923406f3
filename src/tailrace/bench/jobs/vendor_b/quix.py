from __future__ import annotations

from base64 import b64encode
from typing import Any

from quixstreams import State
from quixstreams.dataframe import StreamingDataFrame

from . import LONGEST

MINUTE_NS = 60 * 10**9


def encode(record: dict[str, Any]) -> dict[str, Any]:
    body = b64encode(record["text"].encode()[:LONGEST]).decode()
    return {"key": record["key"], "number": record["number"], "intended_ns": record["intended_ns"], "body": body}


def count(record: dict[str, Any], state: State) -> dict[str, Any]:
    """The count of the current minute: a key's records come in order."""
    minute, counted = state.get("counted", [0, 0])
    now = record["intended_ns"] // MINUTE_NS
    counted = counted + 1 if minute == now else 1
    state.set("counted", [now, counted])
    return {**record, "count": counted}


def build(records: StreamingDataFrame) -> StreamingDataFrame:
    return records.apply(encode).apply(count, stateful=True)
