from __future__ import annotations

from typing import Any

from quixstreams.dataframe import StreamingDataFrame

from .. import score


def answer(record: dict[str, Any]) -> dict[str, Any]:
    scored = score.score(record["amount"], record["text"])
    return {"number": record["number"], "intended_ns": record["intended_ns"], "score": scored}


def build(records: StreamingDataFrame) -> StreamingDataFrame:
    return records.apply(answer)
