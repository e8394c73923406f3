"""The dashboard's web server: its life in a thread of the driver, its routes, and who may ask."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import logging
import math
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from typing import Any, Protocol, TypeVar
from zlib import crc32

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tailrace.dashboard.control import Control
from tailrace.dashboard.metrics import exposition
from tailrace.errors import TailraceError
from tailrace.monitor.health import first_line, health_of

THREAD_NAME = "tailrace-dashboard"
STARTS_WITHIN_S = 10
REQUESTS_MAY_END_WITHIN_S = 1

# The page brings all it needs; whatever else a browser is made to load or run comes from somebody else.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
# Not from the machine's own table: a browser runs no script that comes under another type.
MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Monitor(Protocol):
    """What the dashboard shows; every value is plain JSON."""

    def snapshot(self) -> dict[str, Any]:
        """The figures of all queries, without history."""

    def history(self, run_id: str) -> dict[str, Any] | None:
        """One query's last ten minutes; None if there is no such query."""


class Dashboard:
    """A running dashboard. `stop()`, or leaving its `with` block, ends it."""

    def __init__(self, monitor: Monitor, host: str, port: int, control: Control | None = None) -> None:
        self._on_stop: list[Callable[[], object]] = []
        self._socket = listen(host, port)
        address, self.port = self._socket.getsockname()[:2]
        self.host = host
        # Few threads: a slow monitor should not be asked ever more often by impatient browsers.
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix=f"{THREAD_NAME}-monitor")
        app: ASGIApp = Guard(routes(monitor, self._threads, control), host, only_local=is_loopback(address))
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http="h11",
                loop="asyncio",
                ws="none",
                lifespan="off",
                server_header=False,
                log_config=None,
                timeout_graceful_shutdown=REQUESTS_MAY_END_WITHIN_S,
            )
        )
        self._silence = SilentThread()
        self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not self._server.started and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.005)
        if not self._server.started:
            self.stop()
            raise TailraceError(
                "TAILRACE_DASHBOARD_NOT_STARTED",
                f"the dashboard's server on {host}:{self.port} did not start within {STARTS_WITHIN_S} s.",
                "try again when the machine is less busy; your queries run without it.",
            )

    @property
    def url(self) -> str:
        """The page's address."""
        # A wildcard is no address to go to; whoever asked for it means to come from another machine.
        host = socket.gethostname() if is_wildcard(self.host) else self.host
        return f"http://[{host}]:{self.port}/" if ":" in host else f"http://{host}:{self.port}/"

    @property
    def is_running(self) -> bool:
        """True until the dashboard is stopped."""
        return self._thread.is_alive() and not self._server.should_exit

    def on_stop(self, call: Callable[[], object]) -> None:
        """Call a function when the dashboard stops."""
        self._on_stop.append(call)

    def stop(self) -> None:
        """Stop the dashboard and free its port. Safe to call twice."""
        while self._on_stop:
            self._on_stop.pop()()
        self._server.should_exit = True
        self._thread.join(timeout=REQUESTS_MAY_END_WITHIN_S + 5)
        self._socket.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(self, *_failure: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Dashboard({self.url!r})"

    def _run(self) -> None:
        with self._silence:
            self._server.run(sockets=[self._socket])


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
        # Asked for anew each time, but sent only when it changed: no stale page after an upgrade.
        headers = {"cache-control": "no-cache", "etag": f'"{crc32(content):08x}"'}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    async def snapshot(_request: Request) -> Response:
        return await aside(lambda: json_response(monitor.snapshot()))

    async def history(request: Request) -> Response:
        run_id = request.path_params["run_id"]

        def answer() -> Response:
            curves = monitor.history(run_id)
            if curves is None:
                raise HTTPException(404, f"no query has the run id {run_id!r}")
            return json_response(curves)

        return await aside(answer)

    async def metrics(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        content, media_type = await aside(lambda: exposition(monitor.snapshot(), accept))
        return Response(content, headers={"content-type": media_type, "cache-control": "no-store"})

    async def health(request: Request) -> Response:
        strict = request.query_params.get("strict", "0") not in ("", "0", "false")
        found = await aside(lambda: health_of(monitor.snapshot()))
        body: dict[str, Any] = {"status": found.status}
        if found.queries:
            body["queries"] = found.queries
        if found.errors:
            body["errors"] = found.errors
        return json_response(body, found.http_status(strict=strict))

    async def drain(request: Request) -> Response:
        if control is None:
            raise HTTPException(404, "this server only shows figures")
        return json_response(await control.drain(request))

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
    return json_response({"error": reason.detail}, reason.status_code, headers=reason.headers)


async def failure(_request: Request, reason: Exception) -> Response:
    # The page asks each second: what it shows is enough, the trace is for those who look for it.
    logger.debug("a request failed", exc_info=reason)
    return json_response({"error": first_line(f"{type(reason).__name__}: {reason}")}, 500)


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


class Guard:
    """Around all routes: refuses names that are not ours, and tells the browser to be strict.

    A page elsewhere can let its own name point to 127.0.0.1 (DNS rebinding) and so read what is meant for this
    machine only. Its requests carry that name in the Host header; an address or `localhost` cannot be usurped so.
    """

    def __init__(self, app: ASGIApp, host: str, *, only_local: bool) -> None:
        self._app = app
        self._names = {"localhost", host.lower()}
        self._only_local = only_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        app = self._app
        if self._only_local:
            host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
            if not self._is_ours(host):
                app = json_response({"error": f"this is not the server of {host!r}"}, 403)
        await app(scope, receive, send_with_headers)

    def _is_ours(self, host_header: str) -> bool:
        name = host_header.rpartition("]")[0].lstrip("[") or host_header.partition(":")[0]
        return name.lower() in self._names or is_address(name)


class SilentThread(logging.Filter):
    """While entered: nothing that uvicorn logs from this thread; a server of the user's own logs as before."""

    NAMES = ("uvicorn.error", "uvicorn.access")

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        for name in self.NAMES:
            logging.getLogger(name).addFilter(self)

    def __exit__(self, *_failure: object) -> None:
        for name in self.NAMES:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, so that the port is ours and known before anything else starts."""
    if not 0 <= port <= 65535:
        raise _port_unusable(host, port, "it is not a number from 0 to 65535")
    try:
        # An empty host would mean every address of the machine; that should not happen by an unset variable.
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM) if host else []
    except (OSError, UnicodeError):
        found = []
    if not found:
        raise _host_unknown(f"the host '{host}' has no address.")
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as reason:
        listener.close()
        if reason.errno == errno.EADDRINUSE:
            raise _port_taken(host, port) from None
        if reason.errno == errno.EADDRNOTAVAIL:
            raise _host_unknown(f"the host '{host}' is not this machine.") from None
        raise _port_unusable(host, port, str(reason.strerror)) from None
    return listener


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def is_wildcard(host: str) -> bool:
    return is_address(host) and ipaddress.ip_address(host).is_unspecified


def _port_taken(host: str, port: int) -> TailraceError:
    return TailraceError(
        "TAILRACE_PORT_TAKEN",
        f"{host}:{port} is in use by another program.",
        "choose another port, or 0: then the operating system picks a free one.",
    )


def _port_unusable(host: str, port: int, why: str) -> TailraceError:
    return TailraceError(
        "TAILRACE_PORT_UNUSABLE",
        f"port {port} on {host} cannot be used: {why}.",
        "choose a port from 1024 to 65535, or 0: then the operating system picks a free one.",
    )


def _host_unknown(problem: str) -> TailraceError:
    return TailraceError(
        "TAILRACE_HOST_UNKNOWN",
        problem,
        "name an address of this machine: 127.0.0.1 for this machine only, 0.0.0.0 for all that can reach it.",
    )
