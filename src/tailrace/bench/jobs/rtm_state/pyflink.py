from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from ..runtimes.pyflink_records import by_key


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        key, number, intended_ns, _ = value
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield json.dumps({"key": key, "number": number, "intended_ns": intended_ns, "count": count})


def build(records: DataStream) -> DataStream:
    return by_key(records).process(Count(), output_type=Types.STRING())
