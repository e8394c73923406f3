from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from ..runtimes.pyflink_records import by_key


class First(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        # The key of a record of this workload is its id.
        key, number, intended_ns, _ = value
        if not self.seen.value():
            self.seen.update(True)
            yield json.dumps({"number": number, "intended_ns": intended_ns, "id": key})


def build(records: DataStream) -> DataStream:
    return by_key(records).process(First(), output_type=Types.STRING())
