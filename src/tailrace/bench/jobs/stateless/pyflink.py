from __future__ import annotations

import json

from pyflink.common import Types
from pyflink.datastream import DataStream


def answers(text: str) -> list[str]:
    record = json.loads(text)
    if record["amount"] % 10 == 0:
        return []
    kept = {"number": record["number"], "intended_ns": record["intended_ns"], "doubled": record["amount"] * 2}
    return [json.dumps(kept)]


def build(records: DataStream) -> DataStream:
    return records.flat_map(answers, output_type=Types.STRING())
