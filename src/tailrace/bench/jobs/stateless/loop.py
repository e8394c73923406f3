from __future__ import annotations

import json


def answer(value: bytes) -> bytes | None:
    record = json.loads(value)
    if record["amount"] % 10 == 0:
        return None
    doubled = record["amount"] * 2
    kept = {"number": record["number"], "intended_ns": record["intended_ns"], "doubled": doubled}
    return json.dumps(kept).encode()
