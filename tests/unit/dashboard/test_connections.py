"""Clients of the dashboard that do not go on, and others beside them."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tailrace.contract.drains import Drained
from tailrace.dashboard import Dashboard, connections, serve
from tests.helpers.half_open import half_open, is_closed
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query
from tests.helpers.waiting import until

TOKEN = "the-token"
BODY_MISSING = (
    f"POST /api/drain HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 50\r\n\r\n{{"
).encode()


@pytest.fixture
def drains() -> list[threading.Event]:
    """Each drain waits for its event."""
    return []


@pytest.fixture
def dashboard(drains: list[threading.Event]) -> Iterator[Dashboard]:
    def drain(_query: str | None, _timeout_s: float) -> list[Drained]:
        drains.append(threading.Event())
        assert drains[-1].wait(60)
        return []

    with serve(SyntheticMonitor(make_query("fraud")), drain=drain, token=TOKEN) as served:
        yield served


def status_of(dashboard: Dashboard, path: str = "/health") -> int:
    client = http.client.HTTPConnection("127.0.0.1", dashboard.port, timeout=60)
    try:
        client.request("GET", path)
        return client.getresponse().status
    finally:
        client.close()


def open_connections(dashboard: Dashboard) -> int:
    return len(dashboard._server.server_state.connections)


@pytest.mark.parametrize("count", [300, 900])
def test_healthy_clients_are_served_beside_half_open_ones(dashboard: Dashboard, count: int) -> None:
    with half_open(dashboard.port, count) as clients:
        assert [status_of(dashboard) for _ in range(10)] == [200] * 10
        until(lambda: open_connections(dashboard) <= connections.MOST_CONNECTIONS, "the oldest are closed")
        until(lambda: sum(map(is_closed, clients)) >= count - connections.MOST_CONNECTIONS, "and their clients know")


@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nX: y", BODY_MISSING])
def test_a_client_that_does_not_go_on_is_closed(
    dashboard: Dashboard, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_WITHIN_S", 1.0)
    with half_open(dashboard.port, 3, begun) as clients:

        def is_cut_off() -> bool:
            for client in clients:
                with contextlib.suppress(OSError):
                    client.send(b"x" if begun.endswith(b"y") else b"")
            return all(map(is_closed, clients))

        until(is_cut_off, "its time is over")
    until(lambda: open_connections(dashboard) == 0, "none is left")


def test_a_client_that_does_not_read_its_answer_is_closed(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "ANSWER_READ_WITHIN_S", 1.0)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    client.connect(("127.0.0.1", dashboard.port))
    with client:
        ask = b"GET /api/queries/run-of-fraud/history HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with contextlib.suppress(OSError):
            client.sendall(ask * 400)
        until(lambda: open_connections(dashboard) == 0, "its time is over")


def test_an_answer_that_takes_long_is_waited_for(
    dashboard: Dashboard, drains: list[threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_WITHIN_S", 0.5)
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 10)
    client = http.client.HTTPConnection("127.0.0.1", dashboard.port, timeout=60)
    client.request("POST", "/api/drain", b"{}", {"authorization": f"Bearer {TOKEN}"})
    until(lambda: drains, "the drain has begun")
    with half_open(dashboard.port, 30) as clients:
        begun = time.monotonic()
        until(lambda: all(map(is_closed, clients)), "others are closed meanwhile")
        until(lambda: time.monotonic() - begun > 3, "more than a client's time")
    drains[0].set()
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, b'{"drained":[]}')
    client.close()
