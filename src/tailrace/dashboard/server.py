"""The dashboard's web server: a thread of the driver, with a guard around its routes."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tailrace._process.host_guard import HostGuard, is_wildcard, refusal_of
from tailrace.dashboard.connections import BoundedProtocol
from tailrace.dashboard.control import Control
from tailrace.dashboard.listener import listen
from tailrace.dashboard.routes import Monitor, json_response, routes
from tailrace.errors import TailraceError

__all__ = ["Control", "Dashboard", "Monitor"]

THREAD_NAME = "tailrace-dashboard"
STARTS_WITHIN_S = 10
REQUESTS_MAY_END_WITHIN_S = 1

# The page brings all it needs; whatever else a browser is made to load or run is foreign.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class Dashboard:
    """A running dashboard. `stop()`, or leaving its `with` block, ends it."""

    def __init__(self, monitor: Monitor, host: str, port: int, control: Control | None = None) -> None:
        self._on_stop: list[Callable[[], object]] = []
        self._socket = listen(host, port)
        address, self.port = self._socket.getsockname()[:2]
        self.host = host
        # Few threads: a slow monitor should not be asked ever more often by impatient browsers.
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix=f"{THREAD_NAME}-monitor")
        app: ASGIApp = Guard(routes(monitor, self._threads, control), HostGuard(host, address))
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=BoundedProtocol,
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
        # A wildcard is no address to go to; a user who asks for it means to come from another machine.
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


class Guard:
    """Around all routes: refuses names that are not ours, and tells the browser to be strict."""

    def __init__(self, app: ASGIApp, hosts: HostGuard) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        refused = self._hosts.refuses(host)
        app = json_response({"error": refusal_of(host)}, 403) if refused else self._app
        await app(scope, receive, send_with_headers)


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
