from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Stream
from bytewax.operators import StatefulLogic

from ..runtimes.bytewax import Logic, by_key, identity, written

ALERT_AFTER = timedelta(seconds=1)


class Totals(Logic):
    """Counts and sums by key, and reports each busy key once a second from a timer."""

    def answer(self, record: dict[str, Any]) -> Iterable[dict[str, Any]]:
        count, total, alert_at = self.state or (0, 0, None)
        self.state = (count + 1, total + record["amount"], alert_at or datetime.now(UTC) + ALERT_AFTER)
        return [{**identity(record), "count": self.state[0], "total": self.state[1]}]

    def notify_at(self) -> datetime | None:
        return self.state[2] if self.state else None

    def on_notify(self) -> tuple[Iterable[dict[str, Any]], bool]:
        count, total, _ = self.state
        self.state = (count, total, None)
        return [{"count": count, "total": total, "timer": True}], StatefulLogic.RETAIN


def build(messages: Stream[Any]) -> Stream[Any]:
    return written(op.stateful("totals", by_key("key", messages), Totals))
