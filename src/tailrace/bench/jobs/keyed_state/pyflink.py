from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from ..runtimes.pyflink_records import by_key

ALERT_AFTER_MS = 1000


class Totals(KeyedProcessFunction):
    """Counts and sums by key, and reports each busy key once a second from a timer."""

    def open(self, runtime_context: RuntimeContext) -> None:
        held = Types.TUPLE([Types.LONG(), Types.LONG(), Types.BOOLEAN()])
        self.totals = runtime_context.get_state(ValueStateDescriptor("totals", held))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        key, number, intended_ns, amount = value
        count, total, timer = self.totals.value() or (0, 0, False)
        count, total = count + 1, total + amount
        if not timer:
            service = ctx.timer_service()
            service.register_processing_time_timer(service.current_processing_time() + ALERT_AFTER_MS)
        self.totals.update((count, total, True))
        answer = {"key": key, "number": number, "intended_ns": intended_ns, "count": count, "total": total}
        yield json.dumps(answer)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[str]:
        count, total, _ = self.totals.value()
        self.totals.update((count, total, False))
        yield json.dumps({"key": ctx.get_current_key(), "count": count, "total": total, "timer": True})


def build(records: DataStream) -> DataStream:
    return by_key(records).process(Totals(), output_type=Types.STRING())
