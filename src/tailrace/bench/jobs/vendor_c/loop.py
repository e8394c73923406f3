from __future__ import annotations

import json
from base64 import b64encode

from ..vendor_a import LONGEST
from . import TABLE_ROWS

TABLE = {x: x * 2 for x in range(TABLE_ROWS)}


def answer(value: bytes) -> bytes | None:
    record = json.loads(value)
    return json.dumps(
        {
            "number": record["number"],
            "intended_ns": record["intended_ns"],
            "doubled": TABLE[record["number"] % TABLE_ROWS],
            "body": b64encode(record["text"].encode()[:LONGEST]).decode(),
        }
    ).encode()
