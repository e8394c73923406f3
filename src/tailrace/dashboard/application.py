"""`tailrace.dashboard`: the page of the running application."""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from tailrace._process import dashboards
from tailrace._process.console import console
from tailrace._spark import dashboard_token
from tailrace._spark.settings import required_value_of, value_of
from tailrace.dashboard import serve
from tailrace.errors import TailraceError
from tailrace.monitor.live import monitor_of, session_of_this_process
from tailrace.supervise import run_folder
from tailrace.supervise.drain import drain_queries
from tailrace.supervise.remote import TOKEN_VARIABLE

if TYPE_CHECKING:
    from tailrace.dashboard.server import Dashboard

PORT_KEY = "spark.tailrace.dashboard.port"
HOST_KEY = "spark.tailrace.dashboard.host"

_lock = threading.Lock()
_served_applications: dict[str, Dashboard] = {}


def dashboard(spark: SparkSession | None = None, *, host: str | None = None, port: int | None = None) -> Dashboard:
    """Serve a page with the latency of the application's real-time queries, and print its address.

        dashboard = tailrace.dashboard(spark)

    The page is served until `dashboard.stop()` or the end of the process. An application has one dashboard: a second
    call returns the same one, unless it has to move to another address. Reading needs no login, so anyone who can reach
    the address can see the figures. Draining a query through it (`tailrace drain`) needs a token. Only this user on
    this machine knows the token, unless spark.tailrace.dashboard.token or the environment variable TAILRACE_TOKEN sets
    one.

    :param spark: the session; by default the one of this process.
    :param host: the address to listen on; by default spark.tailrace.dashboard.host, or else 127.0.0.1.
    :param port: the port; by default spark.tailrace.dashboard.port, or else a free one.
    """
    spark = spark or session_of_this_process()
    monitor = monitor_of(spark)
    application = str(spark.sparkContext.applicationId)
    wanted_host = host or required_value_of(spark, HOST_KEY)
    wanted_port = port if port is not None else port_of(spark) or 0
    with _lock:
        known = _served_applications.get(application)
        if known is not None and known.is_running and known.host == wanted_host and wanted_port in (0, known.port):
            return known
        # Pages of applications that have ended hold their ports, and this application's may have to move.
        while _served_applications:
            _served_applications.popitem()[1].stop()
        token = _token_of(spark, application)
        served = serve(
            monitor,
            wanted_host,
            wanted_port,
            drain=lambda query, timeout_s: drain_queries(spark, query, timeout_s),
            token=token,
        )
        _served_applications[application] = served
        _leave_a_note(served, str(spark.sparkContext.appName), token)
    console.print(f"Dashboard: {served.url}", soft_wrap=True)
    return served


def _token_of(spark: SparkSession, application: str) -> str:
    chosen = dashboard_token.of(application) or value_of(spark, dashboard_token.KEY)
    return chosen or os.environ.get(TOKEN_VARIABLE, "").strip() or secrets.token_urlsafe()


def _leave_a_note(served: Dashboard, application: str, token: str) -> None:
    """For `tailrace top`, `tailrace drain` and `tailrace run`; it is no harm if there is none."""
    run_folder.report_dashboard(served.url, token)
    try:
        note = dashboards.announce(served.url, application, token)
    except (TailraceError, OSError):
        return
    served.on_stop(lambda: note.unlink(missing_ok=True))
    # A process that just ends takes the page along, but not the note.
    atexit.register(note.unlink, missing_ok=True)


def port_of(spark: SparkSession) -> int | None:
    """The port in the session's settings, if there is one."""
    port = value_of(spark, PORT_KEY)
    return None if port is None else int(port)
