from __future__ import annotations

from typing import Any

from quixstreams import State
from quixstreams.dataframe import StreamingDataFrame


def total(record: dict[str, Any], state: State) -> dict[str, Any]:
    """State belongs to the key of the message."""
    count, total = state.get("totals", [0, 0])
    count, total = count + 1, total + record["amount"]
    state.set("totals", [count, total])
    answer = {"key": record["key"], "number": record["number"], "intended_ns": record["intended_ns"]}
    return {**answer, "count": count, "total": total}


def build(records: StreamingDataFrame) -> StreamingDataFrame:
    return records.apply(total, stateful=True)
