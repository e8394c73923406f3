from __future__ import annotations

from typing import Any

from quixstreams import State
from quixstreams.dataframe import StreamingDataFrame


def count(record: dict[str, Any], state: State) -> dict[str, Any]:
    counted = state.get("count", 0) + 1
    state.set("count", counted)
    answer = {"key": record["key"], "number": record["number"], "intended_ns": record["intended_ns"]}
    return {**answer, "count": counted}


def build(records: StreamingDataFrame) -> StreamingDataFrame:
    return records.apply(count, stateful=True)
