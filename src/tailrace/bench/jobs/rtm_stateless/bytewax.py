from __future__ import annotations

from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Stream

from . import loop


def build(messages: Stream[Any]) -> Stream[Any]:
    return op.map("answer", messages, lambda message: loop.answer(message.value))
