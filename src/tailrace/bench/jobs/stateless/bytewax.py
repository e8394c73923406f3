from __future__ import annotations

from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Stream

from . import loop


def build(messages: Stream[Any]) -> Stream[Any]:
    """Parse, filter and project in one function, as the bare loop does."""
    return op.filter_map("answer", messages, lambda message: loop.answer(message.value))
