from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Stream

from ..runtimes.bytewax import Logic, by_key, identity, written

MINUTE_NS = 60 * 10**9


class Count(Logic):
    """The count of the current minute: a key's records come in order."""

    def answer(self, record: dict[str, Any]) -> Iterable[dict[str, Any]]:
        minute, count = self.state or (0, 0)
        now = record["intended_ns"] // MINUTE_NS
        self.state = (now, count + 1 if minute == now else 1)
        return [{**identity(record), "count": self.state[1]}]


def build(messages: Stream[Any]) -> Stream[Any]:
    return written(op.stateful("count", by_key("key", messages), Count))
