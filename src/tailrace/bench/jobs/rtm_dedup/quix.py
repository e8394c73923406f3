from __future__ import annotations

from typing import Any

from quixstreams import State
from quixstreams.dataframe import StreamingDataFrame


def is_first(_record: dict[str, Any], state: State) -> bool:
    """The key of a message of this workload is its id."""
    if state.exists("seen"):
        return False
    state.set("seen", True)
    return True


def answer(record: dict[str, Any]) -> dict[str, Any]:
    return {"number": record["number"], "intended_ns": record["intended_ns"], "id": record["id"]}


def build(records: StreamingDataFrame) -> StreamingDataFrame:
    return records.filter(is_first, stateful=True).apply(answer)
