"""What may be done to an application through its dashboard's server, and by whom."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from starlette.exceptions import HTTPException
from starlette.requests import Request

from tailrace._process.arguments import require_name, require_seconds
from tailrace.contract.codec import decode, parsed, to_json
from tailrace.contract.drains import DrainAnswer, Drained, DrainRefusal, DrainRequest
from tailrace.errors import TailraceError

LONGEST_BODY = 10_000

Drain = Callable[[str | None, float], list[Drained]]
"""Drains the query of that name or id, or all of them, within this many seconds."""


class Control:
    """Drains queries for clients that know the token. A page elsewhere in the user's browser does not."""

    def __init__(self, drain: Drain, token: str) -> None:
        self._drain = drain
        self._token = token
        # One at a time: another request waits for the first answer.
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tailrace-drain")

    async def drain(self, request: Request) -> DrainAnswer:
        self._admit(request)
        asked = await _asked(request)
        loop = asyncio.get_running_loop()
        try:
            return DrainAnswer(
                tuple(await loop.run_in_executor(self._threads, self._drain, asked.query, asked.timeout_s))
            )
        except TailraceError as refused:
            raise HTTPException(409, to_json(DrainRefusal(refused.code, refused.problem, refused.fix))) from None

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _admit(self, request: Request) -> None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
            raise HTTPException(401, "a drain needs the application's token", {"www-authenticate": "Bearer"})


async def _asked(request: Request) -> DrainRequest:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST_BODY:
            raise HTTPException(413, "the request body is too large")
    try:
        asked = decode(DrainRequest, {"query": None, "timeout_s": 60.0, **parsed(body or b"{}")})
        require_seconds("timeout_s", asked.timeout_s)
        require_name("query", asked.query)
        return asked
    except TailraceError as refused:
        raise HTTPException(400, to_json(DrainRefusal(refused.code, refused.problem, refused.fix))) from None
    except (ValueError, TypeError):
        raise HTTPException(400, 'expected JSON such as {"query": "name", "timeout_s": 60}') from None
