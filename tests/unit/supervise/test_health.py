"""What the probes of a supervised run answer."""

from __future__ import annotations

import contextlib
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tailrace import TailraceError
from tailrace.contract.codec import from_json
from tailrace.contract.health import Health
from tailrace.contract.run_status import IncidentSummary, RecordRange, RestartCounts, RunStatus, State
from tailrace.supervise.run import health_server
from tailrace.supervise.run.health_server import HealthServer
from tailrace.supervise.run.status import Status
from tests.helpers.half_open import half_open, is_closed
from tests.helpers.waiting import until


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
        return int(urllib.request.urlopen(request, timeout=60).status)
    except urllib.error.HTTPError as refused:
        return refused.code


def test_alive_is_not_ready(status: Status, health: HealthServer) -> None:
    assert [code_of(f"{health.url}/{page}") for page in ("health", "ready", "other")] == [200, 503, 404]
    status.enter(State.RUNNING)
    status.set_queries(Health("starting", {"starting": ("scores",)}))
    assert code_of(f"{health.url}/ready") == 503
    status.set_queries(Health("lagging", {"lagging": ("scores",)}))
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
    status.set_queries(Health(next(iter(queries), "idle"), queries))
    assert status.current.is_ready is ready


def test_the_answer_says_why_a_query_is_not_ready(status: Status, health: HealthServer) -> None:
    status.enter(State.RUNNING)
    starting = Health("starting", {"starting": ("scores",)}, reasons={"scores": "nothing has been read yet"})
    status.set_queries(starting)
    incident = IncidentSummary("2026-01-01", None, "OUTAGE", "gone", "wait", (RecordRange("in", 0, 1, 2),), "restarted")
    status.set_incident(incident)
    status.set_restarts(RestartCounts(used=1, limit=3, total=2))
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{health.url}/ready", timeout=60)
    answer = from_json(RunStatus, refused.value.read())
    assert answer.application == starting
    assert (answer.last_incident, answer.restarts) == (incident, RestartCounts(1, 3, 2))
    assert answer == status.current


def test_a_name_that_is_not_ours_is_refused(health: HealthServer) -> None:
    assert code_of(f"{health.url}/health", host="elsewhere.example:80") == 403
    assert code_of(f"{health.url}/health", host="localhost:80") == 200


def test_a_port_that_is_taken(health: HealthServer, status: Status) -> None:
    with pytest.raises(TailraceError) as refused:
        HealthServer(status, "127.0.0.1", int(health.url.rpartition(":")[2]))
    assert refused.value.code == "TAILRACE_PORT_UNUSABLE"


def port_of(health: HealthServer) -> int:
    return int(health.url.rpartition(":")[2])


def threads_for_requests() -> int:
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


def test_healthy_clients_are_served_beside_300_half_open_ones(health: HealthServer) -> None:
    with half_open(port_of(health), 300) as clients:
        assert [code_of(f"{health.url}/health") for _ in range(10)] == [200] * 10
        assert threads_for_requests() <= health_server.MOST_CONNECTIONS + 1
        until(lambda: sum(map(is_closed, clients)) >= 300 - health_server.MOST_CONNECTIONS, "the oldest are closed")
    until(lambda: threads_for_requests() == 0, "no thread is left")


def test_a_client_that_sends_a_byte_now_and_then_is_closed(
    health: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_server, "REQUEST_WITHIN_S", 1.0)
    with half_open(port_of(health), 3) as clients:

        def is_cut_off() -> bool:
            for client in clients:
                with contextlib.suppress(OSError):
                    client.send(b"x")
            return all(map(is_closed, clients))

        until(is_cut_off, "its time is over")
    until(lambda: threads_for_requests() == 0, "no thread is left")


@pytest.mark.parametrize("host", ["", " ", "\t"])
def test_an_empty_host_does_not_mean_everywhere(status: Status, host: str) -> None:
    with pytest.raises(TailraceError) as refused:
        HealthServer(status, host, 0)
    assert refused.value.code == "TAILRACE_HOST_UNKNOWN"


@pytest.mark.parametrize(
    ("host", "port"), [("127.0.0.1", -1), ("127.0.0.1", 70_000), ("no host\0", 0), ("nowhere.invalid", 0)]
)
def test_an_address_that_cannot_be(status: Status, host: str, port: int) -> None:
    with pytest.raises(TailraceError) as refused:
        HealthServer(status, host, port)
    assert refused.value.code == "TAILRACE_PORT_UNUSABLE"
