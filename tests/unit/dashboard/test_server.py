"""The dashboard's server: its lifetime, its routes, its access control, and its errors."""

from __future__ import annotations

import http.client
import json
import logging
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from tailrace import TailraceError
from tailrace.contract.codec import encode
from tailrace.contract.snapshot import Snapshot
from tailrace.dashboard import Dashboard, serve
from tests.helpers.processes import run_python
from tests.helpers.synthetic_monitor import SyntheticMonitor, dist, make_query, state
from tests.helpers.waiting import until

DATA_ROUTES = ["/api/snapshot", "/api/queries/run-of-fraud/history", "/metrics", "/health"]


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def ask(dashboard: Dashboard, path: str, method: str = "GET", **headers: str) -> Answer:
    """One request; header names with underscores for their hyphens."""
    connection = http.client.HTTPConnection(dashboard.host, dashboard.port, timeout=10)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def threads_of_dashboards() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("tailrace-dashboard")}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[SyntheticMonitor, Dashboard]]:
    """One server for all tests that are not about its life."""
    monitor = SyntheticMonitor()
    with serve(monitor) as dashboard:
        yield monitor, dashboard


@pytest.fixture
def monitor(served: tuple[SyntheticMonitor, Dashboard]) -> SyntheticMonitor:
    monitor, _ = served
    monitor.queries = [make_query("fraud")]
    monitor.failure = None
    return monitor


@pytest.fixture
def dashboard(served: tuple[SyntheticMonitor, Dashboard], monitor: SyntheticMonitor) -> Dashboard:
    return served[1]


class SlowMonitor(SyntheticMonitor):
    """Its snapshot comes when the test lets it."""

    def __init__(self) -> None:
        super().__init__(make_query("fraud"))
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def snapshot(self) -> Snapshot:
        self.begun.set()
        self.go_on.wait(timeout=20)
        return super().snapshot()


# Life


def test_it_listens_on_loopback_on_a_free_port_unless_told_otherwise(dashboard: Dashboard) -> None:
    assert dashboard.url == f"http://127.0.0.1:{dashboard.port}/"
    assert dashboard.port > 0
    assert ask(dashboard, "/").status == 200


def test_stopping_frees_the_port_and_leaves_no_thread(monitor: SyntheticMonitor) -> None:
    before = threads_of_dashboards()
    dashboard = serve(monitor)
    assert ask(dashboard, "/api/snapshot").status == 200
    assert len(threads_of_dashboards() - before) == 2
    dashboard.stop()
    dashboard.stop()
    assert until(lambda: not threads_of_dashboards() - before, "all threads end", within_s=5)
    with serve(monitor, port=dashboard.port) as again:
        assert ask(again, "/api/snapshot").status == 200


def test_open_connections_do_not_delay_the_stop(monitor: SyntheticMonitor) -> None:
    dashboard = serve(monitor)
    idle = http.client.HTTPConnection("127.0.0.1", dashboard.port)
    idle.request("GET", "/api/snapshot")
    idle.getresponse().read()
    half_asked = socket.create_connection(("127.0.0.1", dashboard.port))
    half_asked.sendall(b"GET /health HT")
    begun = time.monotonic()
    dashboard.stop()
    assert time.monotonic() - begun < 1
    idle.close()
    half_asked.close()


def test_a_monitor_that_hangs_does_not_delay_the_stop_nor_the_page() -> None:
    before = threads_of_dashboards()
    monitor = SlowMonitor()
    dashboard = serve(monitor)
    waiting = threading.Thread(target=ask, args=(dashboard, "/api/snapshot"))
    try:
        waiting.start()
        assert monitor.begun.wait(timeout=5)
        assert ask(dashboard, "/").status == 200
        begun = time.monotonic()
        dashboard.stop()
        assert time.monotonic() - begun < 3
    finally:
        monitor.go_on.set()
        waiting.join()
    assert until(lambda: not threads_of_dashboards() - before, "all threads end", within_s=5)


def test_a_script_ends_although_it_never_stops_its_dashboard_and_the_log_stays_quiet() -> None:
    result = run_python(
        "import logging, urllib.request\n"
        "logging.basicConfig(level=logging.INFO)\n"
        "from tailrace.dashboard import serve\n"
        "from tailrace.contract.snapshot import Application, Snapshot\n"
        "class Idle:\n"
        "    def snapshot(self): return Snapshot(0.0, Application('', '', '', '', ''), (), ())\n"
        "dashboard = serve(Idle())\n"
        "print(urllib.request.urlopen(dashboard.url + 'health').read().decode())\n",
        timeout_s=30,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"status": "idle"}
    assert result.stderr == ""


def test_a_server_of_the_users_own_still_logs(dashboard: Dashboard, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="uvicorn.error"):
        logging.getLogger("uvicorn.error").info("mine")
        ask(dashboard, "/")
    assert caplog.messages == ["mine"]


def test_a_taken_port_is_named(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    with pytest.raises(TailraceError) as failure:
        serve(monitor, port=dashboard.port)
    assert failure.value.code == "TAILRACE_PORT_TAKEN"
    assert f"127.0.0.1:{dashboard.port}" in failure.value.problem


@pytest.mark.parametrize(
    ("host", "port", "code"),
    [
        ("no-such-host.invalid", 0, "TAILRACE_HOST_UNKNOWN"),
        ("192.0.2.1", 0, "TAILRACE_HOST_UNKNOWN"),  # reserved for documentation: nobody's address
        ("", 0, "TAILRACE_HOST_UNKNOWN"),
        ("a host", 0, "TAILRACE_HOST_UNKNOWN"),
        ("127.0.0.1", 70_000, "TAILRACE_PORT_UNUSABLE"),
        ("127.0.0.1", -1, "TAILRACE_PORT_UNUSABLE"),
    ],
)
def test_an_address_that_cannot_be_is_refused(host: str, port: int, code: str) -> None:
    before = threads_of_dashboards()
    with pytest.raises(TailraceError) as failure:
        serve(SyntheticMonitor(), host, port)
    assert failure.value.code == code
    assert threads_of_dashboards() == before


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "prometheus_client"])
def test_without_the_extra_it_says_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for loaded in list(sys.modules):
        if loaded.startswith((f"{package}.", "tailrace.dashboard.")):
            monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TailraceError) as failure:
        serve(SyntheticMonitor())
    assert failure.value.code == "TAILRACE_DASHBOARD_NOT_INSTALLED"
    assert "tailrace[web]" in failure.value.fix


def test_importing_needs_no_extra() -> None:
    result = run_python(
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['starlette', 'uvicorn', 'prometheus_client']))\n"
        "import tailrace.dashboard\n"
    )
    assert result.returncode == 0, result.stderr


def test_the_face_is_narrow_and_documented() -> None:
    assert sys.modules["tailrace.dashboard"].__all__ == ["Dashboard", "grafana_dashboard", "serve"]
    assert Dashboard.__doc__
    assert serve.__doc__


# The page and its data


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


# Who may ask


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


# When something is wrong


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


# Health


@pytest.mark.parametrize(
    ("statuses", "health", "http_status", "strict"),
    [
        ([], "idle", 200, 200),
        (["ended"], "idle", 200, 200),
        (["running"], "ready", 200, 200),
        (["running", "ended"], "ready", 200, 200),
        (["starting", "running"], "starting", 200, 200),
        (["running", "lagging", "starting"], "lagging", 200, 503),
        (["running", "lagging", "failed"], "failed", 503, 503),
    ],
)
def test_health_is_that_of_the_worst_query(
    dashboard: Dashboard, monitor: SyntheticMonitor, statuses: list[str], health: str, http_status: int, strict: int
) -> None:
    monitor.queries = [make_query(f"q-{status}", status=status, error="why") for status in statuses]
    answer = ask(dashboard, "/health")
    assert (answer.status, answer.json()["status"]) == (http_status, health)
    assert ask(dashboard, "/health?strict=1").status == strict
    assert ask(dashboard, "/health?strict=0").status == http_status


def test_health_says_which_query_it_is(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    failed = make_query("alerts", status="failed", error="SparkException: boom\n\tat somewhere")
    monitor.queries += [make_query("slow", status="lagging"), failed]
    assert ask(dashboard, "/health").json() == {
        "status": "failed",
        "queries": {"ready": ["fraud"], "lagging": ["slow"], "failed": ["alerts"]},
        "errors": {"alerts": "SparkException: boom"},
    }


def test_a_restart_makes_up_for_the_failure_before_it(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    monitor.queries.append({**make_query("fraud", status="failed", ran_s=5000), "run_id": "the run before"})
    assert ask(dashboard, "/health").json()["status"] == "ready"
    assert b'tailrace_query_up{query="fraud"} 1.0' in ask(dashboard, "/metrics").body


# Metrics

METRICS = {
    "tailrace_rows_read",
    "tailrace_bad_records",
    "tailrace_rows_written",
    "tailrace_latency_seconds",
    "tailrace_stage_latency_seconds",
    "tailrace_partition_latency_seconds",
    "tailrace_lag_rows",
    "tailrace_epoch_number",
    "tailrace_epoch_boundary_pause_seconds",
    "tailrace_epoch_boundary_part_seconds",
    "tailrace_state_rows",
    "tailrace_state_memory_bytes",
    "tailrace_state_commit_seconds",
    "tailrace_gc_pause_max_seconds",
    "tailrace_cpu_load_ratio",
    "tailrace_findings",
    "tailrace_query_up",
}


def samples(dashboard: Dashboard) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = parse_text(ask(dashboard, "/metrics").body.decode())
    found = [(one.name, frozenset(one.labels.items()), one.value) for family in families for one in family.samples]
    series = {(name, labels): value for name, labels, value in found}
    assert len(series) == len(found), "a series appears twice"
    return series


def value(dashboard: Dashboard, name: str, **labels: str) -> float:
    return samples(dashboard)[name, frozenset(labels.items())]


def test_metrics_are_in_base_units(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    query = monitor.queries[0]
    query["windows"]["1m"]["end_to_end"] = {**(dist(5.0) or {}), "p99_ms": 48.0, "max_ms": 532.0}
    parts = {"finish": 100.0, "log": 20.0, "plan": 40.0, "launch": 52.0}
    query["boundaries"][-1] |= {"pause_ms": 212.0, "parts_ms": parts}
    query["ended_at"] = time.time()
    latency = {"query": "fraud", "figure": "end_to_end"}
    assert value(dashboard, "tailrace_latency_seconds", **latency, quantile="0.99") == pytest.approx(0.048)
    assert value(dashboard, "tailrace_latency_seconds", **latency, quantile="1") == pytest.approx(0.532)
    assert value(dashboard, "tailrace_rows_read_total", query="fraud") == query["windows"]["run"]["rows_in"]
    assert value(dashboard, "tailrace_epoch_boundary_pause_seconds", query="fraud") == pytest.approx(0.212)
    part = {"query": "fraud", "part": "plan"}
    assert value(dashboard, "tailrace_epoch_boundary_part_seconds", **part) == pytest.approx(0.04)
    assert value(dashboard, "tailrace_state_commit_seconds", query="fraud", operator="stateStoreSave") == 0.118
    assert value(dashboard, "tailrace_gc_pause_max_seconds", executor="1") == 0.022
    assert value(dashboard, "tailrace_cpu_load_ratio", executor="1") == 0.93
    assert value(dashboard, "tailrace_findings", query="fraud", code="TAILRACE_HOT_PARTITION") == 1


def test_metrics_are_all_that_were_promised_and_no_more(dashboard: Dashboard) -> None:
    text = ask(dashboard, "/metrics").body.decode()
    families = list(parse_text(text))
    assert {family.name for family in families} == METRICS
    assert all(family.documentation and family.samples for family in families)
    assert "run-of-fraud" not in text, "a run id would make a new series at each restart"


def test_openmetrics_where_it_is_asked_for(dashboard: Dashboard) -> None:
    plain = ask(dashboard, "/metrics")
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    answer = ask(dashboard, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    families = parse_openmetrics(answer.body.decode())  # type: ignore[no-untyped-call]
    assert {family.name for family in families} == METRICS
    assert ask(dashboard, "/metrics", accept="application/openmetrics-text; version=none").status == 200


def test_the_number_of_series_does_not_grow_with_the_partitions(
    dashboard: Dashboard, monitor: SyntheticMonitor
) -> None:
    query = make_query("wide", partitions=200, hot=150)
    monitor.queries = [query]
    of_partitions = [labels for name, labels in samples(dashboard) if name == "tailrace_partition_latency_seconds"]
    assert len(of_partitions) == 50 * 5
    assert any(("partition", "150") in labels for labels in of_partitions), "the worst one is missing"
    assert len([name for name, _ in samples(dashboard) if name == "tailrace_lag_rows"]) == 50


def test_nor_with_the_queries_that_were(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    ended = [make_query(f"old-{number}", status="ended", partitions=1, ran_s=9000 - number) for number in range(80)]
    monitor.queries = [*ended, make_query("new", ran_s=99_999)]
    up = {labels for name, labels in samples(dashboard) if name == "tailrace_query_up"}
    assert len(up) == 50
    assert frozenset({("query", "new")}) in up


def test_operators_of_one_kind_are_added_up(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    monitor.queries[0]["state"] = [state("dedupe", 10, 100, 5.0), state("dedupe", 7, 50, 9.0)]
    labels = {"query": "fraud", "operator": "dedupe"}
    assert value(dashboard, "tailrace_state_rows", **labels) == 17
    assert value(dashboard, "tailrace_state_memory_bytes", **labels) == 150
    assert value(dashboard, "tailrace_state_commit_seconds", **labels) == 0.009


def test_nothing_recorded_is_no_series(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    monitor.queries = [make_query("new", status="starting", empty=True, findings=[])]
    names = {name for name, _ in samples(dashboard)}
    assert "tailrace_latency_seconds" not in names
    assert value(dashboard, "tailrace_query_up", query="new") == 1
    assert value(dashboard, "tailrace_rows_read_total", query="new") == 0


def test_names_that_prometheus_would_trip_over(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    name = 'a "quoted\\name"\nof two lines {x="y"}'
    monitor.queries = [make_query(name)]
    assert value(dashboard, "tailrace_query_up", query=name) == 1


def test_a_query_without_a_name_has_its_id(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    monitor.queries = [make_query(None)]
    assert value(dashboard, "tailrace_query_up", query="id-of-unnamed") == 1


def test_the_grafana_example_shows_metrics_that_there_are(dashboard: Dashboard) -> None:
    example = json.loads((resources.files("tailrace.dashboard") / "grafana.json").read_text())
    data_source = next(one for one in example["templating"]["list"] if one["type"] == "datasource")
    assert data_source["query"] == "prometheus"
    there = {name for name, _ in samples(dashboard)}
    shown = set()
    for panel in example["panels"]:
        assert panel["datasource"]["uid"] == f"${{{data_source['name']}}}"
        for target in panel["targets"]:
            shown |= set(re.findall(r"tailrace_\w+", target["expr"]))
    assert shown == there
