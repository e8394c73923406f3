from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from ..runtimes.pyflink_records import by_key

MINUTE_NS = 60 * 10**9


class Count(KeyedProcessFunction):
    """The count of the current minute: a key's records come in order."""

    def open(self, runtime_context: RuntimeContext) -> None:
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        self.counted = runtime_context.get_state(ValueStateDescriptor("counted", pair))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        key, number, intended_ns, _ = value
        minute, count = self.counted.value() or (0, 0)
        count = count + 1 if minute == intended_ns // MINUTE_NS else 1
        self.counted.update((intended_ns // MINUTE_NS, count))
        yield json.dumps({"key": key, "number": number, "intended_ns": intended_ns, "count": count})


def build(records: DataStream) -> DataStream:
    return by_key(records).process(Count(), output_type=Types.STRING())
