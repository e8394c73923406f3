from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Stream

from ..runtimes.bytewax import Logic, by_key, identity, written


class Totals(Logic):
    def answer(self, record: dict[str, Any]) -> Iterable[dict[str, Any]]:
        count, total = self.state or (0, 0)
        self.state = (count + 1, total + record["amount"])
        return [{**identity(record), "count": self.state[0], "total": self.state[1]}]


def build(messages: Stream[Any]) -> Stream[Any]:
    return written(op.stateful("totals", by_key("key", messages), Totals))
