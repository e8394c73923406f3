"""The dashboard's routes: files, data, access control and errors."""

from __future__ import annotations

import re
import socket
from importlib import resources

import pytest

from tailrace import TailraceError
from tailrace.contract.codec import encode
from tailrace.dashboard import Dashboard, serve
from tests.helpers.synthetic_monitor import SyntheticMonitor
from tests.unit.dashboard.asking import ask

DATA_ROUTES = ["/api/snapshot", "/api/queries/run-of-fraud/history", "/metrics", "/health"]


def test_every_file_that_the_page_names_is_served(dashboard: Dashboard) -> None:
    types = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    wanted = set(re.findall(r'(?:href|src)="assets/([^"]+)"', ask(dashboard, "/").body.decode()))
    fetched: set[str] = set()
    while wanted - fetched:
        name = (wanted - fetched).pop()
        answer = ask(dashboard, f"/assets/{name}")
        assert answer.status == 200, name
        assert answer.headers["content-type"].startswith(types[name.rpartition(".")[2]])
        fetched.add(name)
        wanted |= set(re.findall(r'from "\./([^"]+)"', answer.body.decode()))
    files = {file.name for file in (resources.files("tailrace.dashboard") / "page").iterdir()}
    assert fetched == files - {"index.html"}, "a file that nobody uses"


def test_an_unchanged_file_is_not_sent_again(dashboard: Dashboard) -> None:
    first = ask(dashboard, "/assets/style.css")
    again = ask(dashboard, "/assets/style.css", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_the_data_is_the_monitors(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    assert ask(dashboard, "/api/snapshot").json()["queries"] == encode(monitor.snapshot().queries)
    history = ask(dashboard, "/api/queries/run-of-fraud/history").json()
    assert len(history["at"]) >= 599
    assert history["heatmap"]["bounds_ms"][0] == 0.5


def test_what_json_cannot_say_is_null(monitor: SyntheticMonitor, dashboard: Dashboard) -> None:
    monitor.queries[0]["windows"]["1m"]["rows_in_per_s"] = float("nan")
    monitor.queries[0]["windows"]["10s"]["rows_in_per_s"] = float("inf")
    answer = ask(dashboard, "/api/snapshot")
    assert b"NaN" not in answer.body
    assert answer.json()["queries"][0]["windows"]["1m"]["rows_in_per_s"] is None
    assert answer.json()["queries"][0]["windows"]["10s"]["rows_in_per_s"] is None


@pytest.mark.parametrize(
    "path",
    [
        "/api/queries/no-such-run/history",
        "/api/queries//history",
        "/api/queries/%3Cscript%3E/history",
        "/assets/no-such-file.js",
        "/assets/../server.py",
        "/assets/..%2fserver.py",
        "/assets/%2e%2e/server.py",
        "/assets/grafana.json",
        "/no/such/page",
    ],
)
def test_what_is_not_there_is_a_404_in_json(dashboard: Dashboard, path: str) -> None:
    answer = ask(dashboard, path)
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]


@pytest.mark.parametrize("path", ["/", "/assets/main.js", *DATA_ROUTES])
def test_one_can_only_look(dashboard: Dashboard, path: str) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert ask(dashboard, path, method).status == 405
    head = ask(dashboard, path, "HEAD")
    assert (head.status, head.body) == (200, b"")


@pytest.mark.parametrize("path", ["/", "/no/such/page", *DATA_ROUTES])
def test_browsers_are_told_to_be_strict(dashboard: Dashboard, path: str) -> None:
    headers = ask(dashboard, path, origin="https://elsewhere.example").headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert not [name for name in headers if name.startswith("access-control-")]
    assert headers["server"] is None


@pytest.mark.parametrize(
    "name", ["elsewhere.example", "elsewhere.example:80", "localhost.elsewhere.example", "", "[x]"]
)
def test_another_name_for_this_machine_is_refused(dashboard: Dashboard, name: str) -> None:
    for path in ("/", *DATA_ROUTES):
        answer = ask(dashboard, path, host=name)
        assert answer.status == 403
        assert b"fraud" not in answer.body


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST:1", "127.0.0.1:1", "[::1]:1", "10.1.2.3"])
def test_this_machines_own_names_and_addresses_are_fine(dashboard: Dashboard, name: str) -> None:
    assert ask(dashboard, "/health", host=name).status == 200


def test_listening_for_other_machines_their_name_for_it_is_not_known(monitor: SyntheticMonitor) -> None:
    with serve(monitor, "0.0.0.0") as dashboard:
        assert ask(dashboard, "/health", host="driver.cluster.example").status == 200
        assert dashboard.url == f"http://{socket.gethostname()}:{dashboard.port}/"


def test_ipv6(monitor: SyntheticMonitor) -> None:
    try:
        dashboard = serve(monitor, "::1")
    except TailraceError:
        pytest.skip("this machine has no IPv6")
    with dashboard:
        assert dashboard.url == f"http://[::1]:{dashboard.port}/"
        assert ask(dashboard, "/health").status == 200
        assert ask(dashboard, "/health", host="elsewhere.example").status == 403


@pytest.mark.parametrize("path", DATA_ROUTES)
def test_a_failing_monitor_is_a_short_error(dashboard: Dashboard, monitor: SyntheticMonitor, path: str) -> None:
    monitor.failure = RuntimeError("the JVM is gone\n  at org.apache.spark.Something(Something.scala:1)\n" + "x" * 5000)
    answer = ask(dashboard, path)
    assert answer.status == 500
    assert answer.json() == {"error": "RuntimeError: the JVM is gone"}
    assert ask(dashboard, "/").status == 200
    monitor.failure = None
    assert ask(dashboard, path).status == 200


def test_a_snapshot_that_cannot_be_understood_is_an_error_too(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    monitor.queries = [{"run_id": "x", "ended_at": None, "boundaries": [], "object": object()}]
    for path in ("/api/snapshot", "/metrics", "/health"):
        answer = ask(dashboard, path)
        assert answer.status == 500
        assert "Traceback" not in answer.json()["error"]
