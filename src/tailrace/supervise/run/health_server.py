"""The supervisor's health server. It answers even while the application is down."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tailrace._process.host_guard import HostGuard, refusal_of
from tailrace.errors import TailraceError
from tailrace.supervise.run.status import Status


class HealthServer:
    """`/health`: the supervisor runs. `/ready`: rows flow. Both return the state of the run."""

    def __init__(self, status: Status, host: str, port: int) -> None:
        handler: type[_Handler] = type("Handler", (_Handler,), {"status": status})
        try:
            self._server = _server_for(host)((host, port), handler)
        except (OSError, OverflowError) as failure:
            raise TailraceError(
                "TAILRACE_PORT_UNUSABLE",
                f"the health server cannot listen on {host}:{port}: {failure}.",
                "choose another --health-port, or 0: then the operating system picks a free one.",
            ) from None
        handler.guard = HostGuard(host, str(self._server.server_address[0]))
        self._server.daemon_threads = True
        address = f"[{host}]" if ":" in host else host
        self.url = f"http://{address}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, name="tailrace-health", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    status: Status
    guard: HostGuard

    def do_GET(self) -> None:
        host = self.headers.get("host", "")
        if self.guard.refuses(host):
            self._answer(403, {"error": refusal_of(host)})
        elif self.path.partition("?")[0] == "/health":
            self._answer(200, self.status.to_dict())
        elif self.path.partition("?")[0] == "/ready":
            self._answer(200 if self.status.is_ready else 503, self.status.to_dict())
        else:
            self._answer(404, {"error": "there are /health and /ready"})

    def _answer(self, code: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("cache-control", "no-store")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Probes come every few seconds."""


def _server_for(host: str) -> type[ThreadingHTTPServer]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return type("Server", (ThreadingHTTPServer,), {"address_family": family})
