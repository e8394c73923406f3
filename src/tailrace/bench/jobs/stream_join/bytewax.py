from __future__ import annotations

from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Stream

from ..runtimes.bytewax import by_key, identity, written


def merge(pair: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    order, payment = pair
    return {**identity(payment), "sum": order["amount"] + payment["amount"]}


def build(orders: Stream[Any], payments: Stream[Any]) -> Stream[Any]:
    """A key is dropped when both sides are there; one that has no partner is kept for ever."""
    joined = op.join("join", by_key("orders", orders), by_key("payments", payments))
    return written(op.map_value("merge", joined, merge))
