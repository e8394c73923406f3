"""The monitor of the running Spark application: one per application, created on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tailrace._spark.plugin import LIVE_FIGURES_CLASS, is_loaded, jvm_object
from tailrace._version import __version__
from tailrace.contract.snapshot import Application
from tailrace.errors import TailraceError
from tailrace.monitor.application import ApplicationMonitor, SessionEndedError

_lock = threading.Lock()
_monitors: dict[str, ApplicationMonitor] = {}


def session_of_this_process() -> SparkSession:
    # A session is active only in the thread that created it; other threads may ask for figures too.
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None or session.sparkContext._jsc is None:
        raise TailraceError(
            "TAILRACE_SESSION_NOT_CONFIGURED",
            "there is no Spark session in this process.",
            "make one with tailrace.configure(SparkSession.builder…).getOrCreate().",
        )
    return session


def monitor_of(spark: SparkSession) -> ApplicationMonitor:
    """The one monitor of the session's application."""
    context = spark.sparkContext
    _require_plugin(context)
    application = str(context.applicationId)
    with _lock:
        for old in [id for id in _monitors if id != application]:
            _monitors.pop(old).stop()
        if application not in _monitors:
            monitor = ApplicationMonitor(_taker(context), _described(context))
            monitor.start()
            _monitors[application] = monitor
        return _monitors[application]


def _taker(context: SparkContext) -> Callable[[], str]:
    figures = jvm_object(context, LIVE_FIGURES_CLASS)

    def take() -> str:
        # The JVM outlives the session, but has nothing new then.
        if context._jsc is None:
            raise SessionEndedError
        try:
            return str(figures.take())
        except (Py4JError, OSError):
            if context._jsc is None:
                raise SessionEndedError from None
            raise

    return take


def _described(context: SparkContext) -> Application:
    return Application(
        id=str(context.applicationId),
        name=str(context.appName),
        master=str(context.master),
        spark_version=str(context.version),
        tailrace_version=__version__,
    )


def _require_plugin(context: SparkContext) -> None:
    if not is_loaded(context):
        raise TailraceError(
            "TAILRACE_SESSION_NOT_CONFIGURED",
            "this Spark session runs without Tailrace's plugin, so nothing is timed.",
            "make the session with tailrace.configure(SparkSession.builder…).getOrCreate().",
        )
