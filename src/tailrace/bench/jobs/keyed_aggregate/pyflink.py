from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from ..runtimes.pyflink_records import by_key


class Totals(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        self.totals = runtime_context.get_state(ValueStateDescriptor("totals", pair))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        key, number, intended_ns, amount = value
        count, total = self.totals.value() or (0, 0)
        count, total = count + 1, total + amount
        self.totals.update((count, total))
        answer = {"key": key, "number": number, "intended_ns": intended_ns, "count": count, "total": total}
        yield json.dumps(answer)


def build(records: DataStream) -> DataStream:
    return by_key(records).process(Totals(), output_type=Types.STRING())
