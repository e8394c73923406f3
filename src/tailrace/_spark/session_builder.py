"""The session builder behind `tailrace.configure`: merges the plugin into what the user set."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from tailrace._process.interrupts import interrupts_deferred
from tailrace._spark import dashboard_token, maven
from tailrace._spark.defaults import REAL_TIME_DEFAULTS, REDACTION
from tailrace._spark.driver_jvm import driver_options, warn_if_too_late
from tailrace._spark.java import require_java
from tailrace._spark.plugin import (
    CLIENT_VERSION_KEY,
    EXTENSION_CLASS,
    LISTENER_CLASS,
    PLUGIN_CLASS,
    is_loaded,
    plugin_jar,
)
from tailrace._spark.user_conf import user_conf
from tailrace._version import __version__
from tailrace.errors import TailraceError

LISTENERS_KEY = "spark.sql.streaming.streamingQueryListeners"

OnSession = Callable[[SparkSession], None]


class RealTimeBuilder(SparkSession.Builder):
    """A session builder that starts Spark with the plugin, or else raises an error."""

    _kafka_connector = True
    _postgresql_driver = False
    _redis_client = False
    _on_session: OnSession | None = None
    _dashboard_token: str | None = None

    @classmethod
    def completing(
        cls,
        builder: SparkSession.Builder,
        *,
        kafka_connector: bool = True,
        postgresql_driver: bool = False,
        redis_client: bool = False,
        on_session: OnSession | None = None,
    ) -> RealTimeBuilder:
        """The user's builder, completed with the plugin and the real-time defaults.

        :param on_session: called with each session that this builder returns.
        """
        # Shared, not copied: what is set later on either builder applies to both.
        completed = cls()
        completed._options = builder._options
        completed._kafka_connector = kafka_connector
        completed._postgresql_driver = postgresql_driver
        completed._redis_client = redis_client
        completed._on_session = on_session
        completed._complete()
        return completed

    def getOrCreate(self) -> SparkSession:
        self._prepare_jvm()
        with _plugin_errors_raised():
            session = super().getOrCreate()
        return self._announced(session)

    def create(self) -> SparkSession:
        self._prepare_jvm()
        with _plugin_errors_raised():
            session = super().create()
        return self._announced(session)

    def _announced(self, session: SparkSession) -> SparkSession:
        if self._dashboard_token is not None:
            dashboard_token.remember(str(session.sparkContext.applicationId), self._dashboard_token)
        if self._on_session is not None:
            self._on_session(session)
        return session

    def _complete(self) -> None:
        """Merge our settings into the user's. Idempotent."""
        self._dashboard_token = dashboard_token.take_from(self._options) or self._dashboard_token
        _refuse_spark_connect(self)
        _refuse_running_session_without_plugin()
        if SparkContext._active_spark_context is not None:
            return
        require_java()
        conf = user_conf(self._options)
        jars = [plugin_jar()]
        if self._kafka_connector and not _names_kafka_connector(conf):
            jars += maven.resolve(maven.KAFKA_CONNECTOR, maven.IvyOptions.from_conf(conf))
        if self._postgresql_driver:
            jars += maven.resolve(maven.POSTGRESQL_DRIVER, maven.IvyOptions.from_conf(conf))
        if self._redis_client:
            jars += maven.resolve(maven.REDIS_CLIENT, maven.IvyOptions.from_conf(conf))
        options = {
            "spark.jars": _merged(conf.get("spark.jars"), map(str, jars)),
            "spark.sql.extensions": _merged(conf.get("spark.sql.extensions"), [EXTENSION_CLASS]),
            "spark.plugins": _merged(conf.get("spark.plugins"), [PLUGIN_CLASS]),
            LISTENERS_KEY: _merged(conf.get(LISTENERS_KEY), [LISTENER_CLASS]),
        }
        defaults = {default.key: default.value for default in REAL_TIME_DEFAULTS} | REDACTION
        defaults |= _cores_of_local_cluster(conf)
        defaults[CLIENT_VERSION_KEY] = __version__
        options |= driver_options(conf)
        self._options.update(options | {key: value for key, value in defaults.items() if key not in conf})

    def _prepare_jvm(self) -> None:
        # Once more: the user may have set more options after `configure`.
        self._complete()
        if SparkContext._active_spark_context is None:
            _same_python_for_local_workers(user_conf(self._options))
            with interrupts_deferred():
                SparkContext._ensure_initialized(conf=spark_conf(self))
            warn_if_too_late(user_conf(self._options))
            _add_to_driver(self._options["spark.jars"])


def spark_conf(builder: SparkSession.Builder) -> SparkConf:
    """The builder's options as PySpark passes them to the JVM."""
    conf = SparkConf()
    for key, value in builder._options.items():
        conf.set(key, str(value))
    return conf


def _merged(users: str | None, ours: Iterable[str]) -> str:
    entries = [entry.strip() for entry in (users or "").split(",") if entry.strip()]
    return ",".join(dict.fromkeys([*entries, *ours]))


def _cores_of_local_cluster(conf: Mapping[str, str]) -> dict[str, str]:
    """The cores to wait for before the first query. With other masters, the user sets them."""
    size = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", conf.get("spark.master", ""))
    return {"spark.cores.max": str(int(size[1]) * int(size[2]))} if size else {}


def _same_python_for_local_workers(conf: Mapping[str, str]) -> None:
    """Let workers on this machine run this interpreter, with its installed packages.

    PySpark's default is the `python3` on the PATH, which is a different one unless the environment is activated.
    """
    if conf.get("spark.master", "local").startswith("local") and "spark.pyspark.python" not in conf:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _names_kafka_connector(conf: Mapping[str, str]) -> bool:
    named = f"{conf.get('spark.jars', '')},{conf.get('spark.jars.packages', '')}"
    return "spark-sql-kafka" in named


def _add_to_driver(jars: str) -> None:
    """Put the jars on the class path of a driver JVM that was started without them.

    spark-submit starts the JVM before the user's script runs, and a stopped session leaves its JVM behind. In both
    cases `spark.jars` comes too late for the driver, though not for the executors.
    """
    jvm: Any = SparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    there = {url.getPath() for url in loader.getURLs()}
    for jar in jars.split(","):
        if Path(jar).is_file() and (url := jvm.java.io.File(jar).toURI().toURL()).getPath() not in there:
            loader.addURL(url)


def _refuse_spark_connect(builder: SparkSession.Builder) -> None:
    options = builder._options
    mode = str(options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))).lower()
    asked = "spark.remote" in options or mode == "connect"
    asked = asked or any(name in os.environ for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"))
    if asked or "pyspark.sql.connect" in type(builder).__module__:
        raise TailraceError(
            "TAILRACE_CONNECT_NOT_SUPPORTED",
            "this builder makes a Spark Connect session; Tailrace extends the engine and needs the classic one.",
            'use .master("local[8]") or .master("spark://…") instead of .remote(…), and unset SPARK_REMOTE.',
        )


def _refuse_running_session_without_plugin() -> None:
    context = SparkContext._active_spark_context
    if context is not None and not is_loaded(context):
        raise TailraceError(
            "TAILRACE_SESSION_ALREADY_RUNNING",
            "a Spark session is already running in this process, without Tailrace's plugin; "
            "plugins can only be loaded when Spark starts.",
            "stop it first (SparkSession.active().stop()), or call tailrace.configure before the first getOrCreate().",
        )


@contextmanager
def _plugin_errors_raised() -> Iterator[None]:
    """Raise the plugin's own error during Spark's start, which arrives inside a JVM stack trace."""
    try:
        yield
    except (Py4JJavaError, CapturedException) as failure:
        coded = TailraceError.find_in(str(failure))
        if coded is not None:
            raise coded from None
        raise
