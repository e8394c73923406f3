"""The dashboard's routes: the page, its JSON, metrics, health and drains."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any, Protocol, TypeVar
from zlib import crc32

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tailrace._process.redaction import hide_in_text
from tailrace.contract.codec import encode
from tailrace.contract.errors import ErrorAnswer
from tailrace.contract.snapshot import History, Snapshot
from tailrace.dashboard.control import Control
from tailrace.dashboard.metrics import exposition
from tailrace.monitor.health import first_line, health_of

# Not from the machine's own table: a browser runs no script that comes under another type.
MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Monitor(Protocol):
    """What the dashboard shows."""

    def snapshot(self) -> Snapshot:
        """The figures of all queries, without history."""

    def history(self, run_id: str) -> History | None:
        """One query's last ten minutes; None if there is no such query."""


def routes(monitor: Monitor, threads: ThreadPoolExecutor, control: Control | None = None) -> Starlette:
    assets = page_files()

    async def aside(work: Callable[[], T]) -> T:
        # Asking the monitor may take a while; other requests, and the end of the server, do not wait for it.
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    async def page(request: Request) -> Response:
        return file_response(request, "index.html")

    async def asset(request: Request) -> Response:
        return file_response(request, request.path_params["name"])

    def file_response(request: Request, name: str) -> Response:
        if name not in assets:
            raise HTTPException(404, f"there is no file {name!r}")
        content, media_type = assets[name]
        # Requested each time, but sent only when it changed: no stale page after an upgrade.
        headers = {"cache-control": "no-cache", "etag": f'"{crc32(content):08x}"'}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    async def snapshot(_request: Request) -> Response:
        return await aside(lambda: json_response(encode(monitor.snapshot())))

    async def history(request: Request) -> Response:
        run_id = request.path_params["run_id"]

        def answer() -> Response:
            curves = monitor.history(run_id)
            if curves is None:
                raise HTTPException(404, f"no query has the run id {run_id!r}")
            return json_response(encode(curves))

        return await aside(answer)

    async def metrics(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        content, media_type = await aside(lambda: exposition(monitor.snapshot(), accept))
        return Response(content, headers={"content-type": media_type, "cache-control": "no-store"})

    async def health(request: Request) -> Response:
        strict = request.query_params.get("strict", "0") not in ("", "0", "false")
        found = await aside(lambda: health_of(monitor.snapshot()))
        return json_response(encode(found), found.http_status(strict=strict))

    async def drain(request: Request) -> Response:
        if control is None:
            raise HTTPException(404, "this dashboard cannot drain queries")
        return json_response(encode(await control.drain(request)))

    return Starlette(
        routes=[
            Route("/", page),
            Route("/assets/{name}", asset),
            Route("/api/snapshot", snapshot),
            Route("/api/queries/{run_id}/history", history),
            Route("/metrics", metrics),
            Route("/health", health),
            Route("/api/drain", drain, methods=["POST"]),
        ],
        exception_handlers={HTTPException: refusal, Exception: failure},
    )


async def refusal(_request: Request, reason: Exception) -> Response:
    assert isinstance(reason, HTTPException)
    return json_response(encode(ErrorAnswer(reason.detail)), reason.status_code, headers=reason.headers)


async def failure(_request: Request, reason: Exception) -> Response:
    # The page asks each second: what it shows is enough, the trace is for those who look for it.
    logger.debug("a request failed", exc_info=reason)
    return json_response(encode(ErrorAnswer(hide_in_text(first_line(f"{type(reason).__name__}: {reason}")))), 500)


def json_response(value: Any, status: int = 200, headers: Any = None) -> Response:
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(without_nan(value), allow_nan=False, separators=(",", ":"))
    headers = {"cache-control": "no-store", **(headers or {})}
    return Response(text, status, headers=headers, media_type="application/json")


def without_nan(value: Any) -> Any:
    """JSON has no NaN and no infinity: a browser would refuse the whole answer for one of them."""
    if isinstance(value, dict):
        return {key: without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def page_files() -> dict[str, tuple[bytes, str]]:
    """The page, from the package into memory: it is small, and a request cannot reach any other file."""
    return {
        file.name: (file.read_bytes(), MEDIA_TYPES[file.name.rpartition(".")[2]])
        for file in (resources.files("tailrace.dashboard") / "page").iterdir()
        if file.name.rpartition(".")[2] in MEDIA_TYPES
    }
