"""The supervisor's health server. It answers even while the application is down."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tailrace._process.host_guard import HostGuard, refusal_of
from tailrace.contract.codec import to_json
from tailrace.contract.errors import ErrorAnswer
from tailrace.contract.run_status import RunStatus
from tailrace.errors import TailraceError
from tailrace.supervise.run.status import Status

# Of a whole request and its answer: a probe takes milliseconds.
REQUEST_WITHIN_S = 5.0
# When one more comes, the oldest is closed: it is the one most likely to be stuck.
MOST_CONNECTIONS = 64


class HealthServer:
    """`/health`: the supervisor runs. `/ready`: rows flow. Both return the state of the run."""

    def __init__(self, status: Status, host: str, port: int) -> None:
        if not host.strip():
            # It would mean every address of the machine, which should not happen by a variable that is not set.
            raise TailraceError(
                "TAILRACE_HOST_UNKNOWN",
                "the host of the health server is empty.",
                "name an address: --health-host 127.0.0.1 for this machine only, 0.0.0.0 for all that can reach it.",
            )
        handler: type[_Handler] = type("Handler", (_Handler,), {"status": status})
        try:
            self._server = _Server(host, port, handler)
        except (OSError, OverflowError, ValueError, TypeError) as failure:
            raise TailraceError(
                "TAILRACE_PORT_UNUSABLE",
                f"the health server cannot listen on {host}:{port}: {failure}.",
                "choose another --health-port, or 0: then the operating system picks a free one.",
            ) from None
        handler.guard = HostGuard(host, str(self._server.server_address[0]))
        address = f"[{host}]" if ":" in host else host
        self.url = f"http://{address}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, name="tailrace-health", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """One thread for each connection, of which there are few, and none for long."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # By the time when each came, the oldest first.
        self._open: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        super().__init__((host, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open[request] = time.monotonic()
            while len(self._open) > MOST_CONNECTIONS:
                self._cut(next(iter(self._open)))
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Called twice a second. A deadline for each byte would let a client hold its thread for ever."""
        with self._lock:
            begun_before = time.monotonic() - REQUEST_WITHIN_S
            for late in [request for request, begun in self._open.items() if begun < begun_before]:
                self._cut(late)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away, or that were cut off, are no news."""

    def _cut(self, request: socket.socket) -> None:
        """Ends what its thread waits for; the thread closes the socket."""
        self._open.pop(request)
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    status: Status
    guard: HostGuard

    def do_GET(self) -> None:
        host = self.headers.get("host", "")
        if self.guard.refuses(host):
            self._answer(403, ErrorAnswer(refusal_of(host)))
        elif self.path.partition("?")[0] == "/health":
            self._answer(200, self.status.current)
        elif self.path.partition("?")[0] == "/ready":
            current = self.status.current
            self._answer(200 if current.is_ready else 503, current)
        else:
            self._answer(404, ErrorAnswer("there are /health and /ready"))

    def _answer(self, code: int, body: RunStatus | ErrorAnswer) -> None:
        text = to_json(body).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("cache-control", "no-store")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Probes come every few seconds."""
