from __future__ import annotations

from typing import Any

from quixstreams.dataframe import StreamingDataFrame


def answer(record: dict[str, Any]) -> dict[str, Any]:
    return {"number": record["number"], "intended_ns": record["intended_ns"], "doubled": record["amount"] * 2}


def build(records: StreamingDataFrame) -> StreamingDataFrame:
    return records.filter(lambda record: record["amount"] % 10 != 0).apply(answer)
