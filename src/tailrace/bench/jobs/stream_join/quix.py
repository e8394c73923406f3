from __future__ import annotations

from typing import Any

from quixstreams.dataframe import StreamingDataFrame

WITHIN_MS = 10_000


def merge(order: dict[str, Any], payment: dict[str, Any]) -> dict[str, Any]:
    total = order["amount"] + payment["amount"]
    return {"number": payment["number"], "intended_ns": payment["intended_ns"], "sum": total}


def build(orders: StreamingDataFrame, payments: StreamingDataFrame) -> StreamingDataFrame:
    return orders.join_interval(
        payments, on_merge=merge, grace_ms=WITHIN_MS, backward_ms=WITHIN_MS, forward_ms=WITHIN_MS
    )
