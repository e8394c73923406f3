from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Stream

from ..runtimes.bytewax import Logic, by_key, identity, written


class Count(Logic):
    def answer(self, record: dict[str, Any]) -> Iterable[dict[str, Any]]:
        self.state = (self.state or 0) + 1
        return [{**identity(record), "count": self.state}]


def build(messages: Stream[Any]) -> Stream[Any]:
    return written(op.stateful("count", by_key("key", messages), Count))
