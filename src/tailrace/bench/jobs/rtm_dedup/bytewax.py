from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Stream

from ..runtimes.bytewax import Logic, by_key, identity, written


class First(Logic):
    """The key of a record of this workload is its id."""

    def answer(self, record: dict[str, Any]) -> Iterable[dict[str, Any]]:
        if self.state:
            return []
        self.state = True
        return [identity(record)]


def build(messages: Stream[Any]) -> Stream[Any]:
    return written(op.stateful("first", by_key("key", messages), First))
