"""The dashboard: the latency of this application's real-time queries as a web page, metrics and health checks.

    with tailrace.dashboard.serve(monitor, port=4050) as dashboard:
        print(dashboard.url)

It needs the `web` extra: `pip install tailrace[web]`.
"""

from __future__ import annotations

import importlib
from importlib import resources
from types import ModuleType
from typing import TYPE_CHECKING

from tailrace.errors import TailraceError

if TYPE_CHECKING:
    from tailrace.dashboard.control import Drain
    from tailrace.dashboard.server import Dashboard, Monitor

__all__ = ["Dashboard", "grafana_dashboard", "serve"]


def serve(
    monitor: Monitor,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    drain: Drain | None = None,
    token: str = "",
) -> Dashboard:
    """Serve a monitor's figures from a background thread, until `stop()` or the end of the process.

    :param monitor: provides the figures. It is asked only when someone looks.
    :param host: the address to listen on. Anyone who can reach it can read the figures: there is no login.
    :param port: a fixed port. By default the operating system picks a free one.
    :param drain: drains queries for clients that send `token`. Without it the server only shows figures.
    :param token: the secret that a client needs to drain a query.
    """
    server = _server()
    control = server.Control(drain, token) if drain is not None and token else None
    dashboard: Dashboard = server.Dashboard(monitor, host, port, control)
    if control is not None:
        dashboard.on_stop(control.stop)
    return dashboard


def grafana_dashboard() -> str:
    """Return an example dashboard for Grafana, as JSON to import there."""
    return (resources.files(__name__) / "grafana.json").read_text(encoding="utf-8")


def require_web() -> None:
    """An error if what the dashboard needs is not installed."""
    _server()


def _server() -> ModuleType:
    try:
        return importlib.import_module("tailrace.dashboard.server")
    except ModuleNotFoundError as missing:
        raise TailraceError(
            "TAILRACE_DASHBOARD_NOT_INSTALLED",
            f"the dashboard needs packages that are not installed here; '{missing.name}' is the first of them.",
            "pip install 'tailrace[web]'",
        ) from None


def __getattr__(name: str) -> object:
    # The class lives next to the web server, whose packages an application without a dashboard does not have.
    if name == "Dashboard":
        return _server().Dashboard
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
