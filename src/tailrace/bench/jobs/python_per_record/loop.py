from __future__ import annotations

import json

from .. import score


def answer(value: bytes) -> bytes | None:
    record = json.loads(value)
    scored = score.score(record["amount"], record["text"])
    return json.dumps({"number": record["number"], "intended_ns": record["intended_ns"], "score": scored}).encode()
