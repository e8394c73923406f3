from __future__ import annotations

import json

from pyflink.common import Types
from pyflink.datastream import DataStream

from .. import score


def answer(text: str) -> str:
    record = json.loads(text)
    scored = score.score(record["amount"], record["text"])
    return json.dumps({"number": record["number"], "intended_ns": record["intended_ns"], "score": scored})


def build(records: DataStream) -> DataStream:
    return records.map(answer, output_type=Types.STRING())
