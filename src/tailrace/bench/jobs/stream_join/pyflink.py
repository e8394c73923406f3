from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyflink.common import Types
from pyflink.datastream import DataStream, RuntimeContext
from pyflink.datastream.functions import KeyedCoProcessFunction
from pyflink.datastream.state import ValueStateDescriptor

from ..runtimes.pyflink_records import RECORD, by_key

KEPT_MS = 10_000


class Join(KeyedCoProcessFunction):
    """Keeps whichever comes first, for ten seconds."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.order = runtime_context.get_state(ValueStateDescriptor("order", RECORD))
        self.payment = runtime_context.get_state(ValueStateDescriptor("payment", RECORD))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        yield from self._match(value, self.payment.value(), self.order, ctx)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        yield from self._match(value, self.order.value(), self.payment, ctx)

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[str]:
        self.order.clear()
        self.payment.clear()
        yield from ()

    def _match(self, value: Any, other: Any, own: Any, ctx: Any) -> Iterator[str]:
        own.update(value)
        if other is None:
            service = ctx.timer_service()
            service.register_processing_time_timer(service.current_processing_time() + KEPT_MS)
            return
        # The later of the two is the payment.
        paid = max(value, other, key=lambda record: record[1])
        yield json.dumps({"number": paid[1], "intended_ns": paid[2], "sum": value[3] + other[3]})


def build(orders: DataStream, payments: DataStream) -> DataStream:
    return by_key(orders).connect(by_key(payments)).process(Join(), output_type=Types.STRING())
