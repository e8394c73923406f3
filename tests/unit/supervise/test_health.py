"""What the probes of a supervised run answer."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tailrace import TailraceError
from tailrace.contract.health import Health
from tailrace.supervise.run.health_server import HealthServer
from tailrace.supervise.run.status import State, Status


@pytest.fixture
def status() -> Status:
    return Status()


@pytest.fixture
def health(status: Status) -> Iterator[HealthServer]:
    server = HealthServer(status, "127.0.0.1", 0)
    yield server
    server.stop()


def code_of(url: str, host: str | None = None) -> int:
    try:
        request = urllib.request.Request(url, headers={"host": host} if host else {})
        return int(urllib.request.urlopen(request, timeout=10).status)
    except urllib.error.HTTPError as refused:
        return refused.code


def test_alive_is_not_ready(status: Status, health: HealthServer) -> None:
    assert [code_of(f"{health.url}/{page}") for page in ("health", "ready", "other")] == [200, 503, 404]
    status.enter(State.RUNNING)
    status.tell(queries=Health("starting", {"starting": ("scores",)}))
    assert code_of(f"{health.url}/ready") == 503
    status.tell(queries=Health("lagging", {"lagging": ("scores",)}))
    assert code_of(f"{health.url}/ready") == 200
    status.enter(State.WAITING)
    assert [code_of(f"{health.url}/{page}") for page in ("health", "ready")] == [200, 503]


@pytest.mark.parametrize(
    ("queries", "ready"),
    [
        ({}, False),
        ({"ready": ("a",)}, True),
        ({"ready": ("a",), "lagging": ("b",)}, True),
        ({"lagging": ("a",), "starting": ("b",)}, False),
        ({"failed": ("a",), "ready": ("b",)}, False),
    ],
)
def test_every_query_has_to_be_ready(status: Status, queries: dict[str, tuple[str, ...]], ready: bool) -> None:
    status.enter(State.RUNNING)
    status.tell(queries=Health(next(iter(queries), "idle"), queries))
    assert status.is_ready is ready


def test_a_name_that_is_not_ours_is_refused(health: HealthServer) -> None:
    assert code_of(f"{health.url}/health", host="elsewhere.example:80") == 403
    assert code_of(f"{health.url}/health", host="localhost:80") == 200


def test_a_port_that_is_taken(health: HealthServer, status: Status) -> None:
    with pytest.raises(TailraceError) as refused:
        HealthServer(status, "127.0.0.1", int(health.url.rpartition(":")[2]))
    assert refused.value.code == "TAILRACE_PORT_UNUSABLE"
