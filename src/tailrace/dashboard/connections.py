"""Connections of the dashboard's server: how long a client may take, and how many there are."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

# For a request's headers and body together; a drain's answer may take minutes, which is our time and not the client's.
REQUEST_WITHIN_S = 10.0
# For reading an answer.
ANSWER_READ_WITHIN_S = 30.0
# When one more comes, the one whose client has kept us waiting longest is closed.
MOST_CONNECTIONS = 100


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol, which by itself waits for ever for a request that was begun.

    A client's time begins when we start to wait for it, and does not begin again with each byte that it sends.
    """

    _timer: asyncio.TimerHandle | None = None
    _waiting_since = 0.0
    _awaited: tuple[object, ...] = ()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._waiting_since = self.loop.time()
        super().connection_made(transport)
        self._look()
        # A connection that was aborted stays in the list until the loop gets to it.
        connections = cast("set[BoundedProtocol]", self.connections)
        still_open = [one for one in connections if not one.transport.is_closing()]
        if len(still_open) > MOST_CONNECTIONS:
            waited_for = [one for one in still_open if one._limit_s() is not None]
            min(waited_for, key=lambda one: one._waiting_since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Once a second: has the client exceeded its time?"""
        now = self.loop.time()
        limit_s = self._limit_s()
        # A new request, or another part of one.
        awaited = (self.cycle, self.cycle is not None and self.cycle.more_body, limit_s)
        if awaited != self._awaited:
            self._awaited, self._waiting_since = awaited, now
        if limit_s is not None and now - self._waiting_since > limit_s:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(1.0, self._look)

    def _limit_s(self) -> float | None:
        """How long we wait for what the client owes us now; None while we owe an answer."""
        cycle: Any = self.cycle
        if self.transport.get_write_buffer_size() > 0:
            return ANSWER_READ_WITHIN_S
        answers = cycle is not None and not cycle.response_complete and not cycle.more_body
        return None if answers else REQUEST_WITHIN_S
