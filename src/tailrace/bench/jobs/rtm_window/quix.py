from __future__ import annotations

from typing import Any

from quixstreams import State
from quixstreams.dataframe import StreamingDataFrame

MINUTE_NS = 60 * 10**9


def count(record: dict[str, Any], state: State) -> dict[str, Any]:
    """The count of the current minute: a key's records come in order."""
    minute, counted = state.get("counted", [0, 0])
    now = record["intended_ns"] // MINUTE_NS
    counted = counted + 1 if minute == now else 1
    state.set("counted", [now, counted])
    answer = {"key": record["key"], "number": record["number"], "intended_ns": record["intended_ns"]}
    return {**answer, "count": counted}


def build(records: StreamingDataFrame) -> StreamingDataFrame:
    return records.apply(count, stateful=True)
