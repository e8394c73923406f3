"""The dashboard's server: its address, its lifetime and its end."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import sys
import threading
import time

import pytest

from tailrace import TailraceError
from tailrace.contract.snapshot import Snapshot
from tailrace.dashboard import Dashboard, serve
from tests.helpers.processes import run_python
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query
from tests.helpers.waiting import stretched, until
from tests.unit.dashboard.asking import ask


def threads_of_dashboards() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("tailrace-dashboard")}


class SlowMonitor(SyntheticMonitor):
    """Its snapshot comes when the test lets it."""

    def __init__(self) -> None:
        super().__init__(make_query("fraud"))
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def snapshot(self) -> Snapshot:
        self.begun.set()
        self.go_on.wait(timeout=600)
        return super().snapshot()


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
    assert until(lambda: not threads_of_dashboards() - before, "all threads end")
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
    assert time.monotonic() - begun < stretched(10)
    idle.close()
    half_asked.close()


def test_a_monitor_that_hangs_does_not_delay_the_stop_nor_the_page() -> None:
    before = threads_of_dashboards()
    monitor = SlowMonitor()
    dashboard = serve(monitor)
    waiting = threading.Thread(target=ask, args=(dashboard, "/api/snapshot"))
    try:
        waiting.start()
        assert monitor.begun.wait(timeout=120)
        assert ask(dashboard, "/").status == 200
        begun = time.monotonic()
        dashboard.stop()
        assert time.monotonic() - begun < stretched(20)
    finally:
        monitor.go_on.set()
        waiting.join()
    assert until(lambda: not threads_of_dashboards() - before, "all threads end")


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
        timeout_s=120,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {"status": "idle", "queries": {}, "errors": {}, "reasons": {}}
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
