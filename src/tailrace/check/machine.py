"""`tailrace doctor`: checks everything on this machine that a real-time query needs."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tailrace._broker import background
from tailrace._broker.admin import require_broker
from tailrace._kafka.cluster import cluster_of
from tailrace._process.paths import log_file
from tailrace._spark import maven
from tailrace._spark.java import require_java
from tailrace._spark.logged_session import start_with_log
from tailrace._spark.plugin import plugin_jar
from tailrace._spark.session_builder import RealTimeBuilder
from tailrace._spark.slots import free_slots
from tailrace._version import __version__
from tailrace.errors import TailraceError

OLDEST_PYTHON = (3, 11)
LEAST_DISK_GB = 1.0
SLOTS_OF_A_SMALL_QUERY = 4


@dataclass(frozen=True)
class Requirement:
    """Something that a real-time query needs of this machine; `fix` is there if it is not met or could be better."""

    name: str
    ok: bool
    detail: str
    fix: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class DoctorOptions:
    master: str = "local[*]"
    bootstrap_servers: str | None = None
    checkpoint_location: Path | None = None
    kafka_config: Path | None = None


def examine(options: DoctorOptions, report: Callable[[Requirement], None] = lambda _: None) -> list[Requirement]:
    """All requirements; each is also reported as soon as it is known."""
    requirements = []

    def note(name: str, look: Callable[[], Requirement]) -> Requirement:
        try:
            requirement = look()
        except TailraceError as error:
            requirement = Requirement(name, False, error.problem, error.fix)
        except Exception as error:
            requirement = Requirement(name, False, f"the check failed: {error!r}", "please report this.")
        requirements.append(requirement)
        report(requirement)
        return requirement

    note("Python", _python)
    java = note("Java", _java)
    pyspark = note("PySpark", _pyspark)
    plugin = note("Plugin", _plugin)
    if java.ok and pyspark.ok and plugin.ok:
        note("Kafka connector", _connector)
        session = _Session(options.master)
        note("Session", session.handshake)
        note("Task slots", session.slots)
        session.stop()
    note("Kafka broker", lambda: _broker(options.bootstrap_servers, options.kafka_config))
    note("Checkpoint disk", lambda: _disk(options.checkpoint_location or Path(tempfile.gettempdir())))
    return requirements


def _python() -> Requirement:
    ok = sys.version_info >= OLDEST_PYTHON
    fix = None if ok else "use Python 3.11 or later, which PySpark 4.3 requires."
    return Requirement("Python", ok, f"{platform.python_version()} at {sys.executable}", fix)


def _java() -> Requirement:
    java = require_java()
    return Requirement("Java", True, f"{java.version} at {java.command} (found by {java.found_by})")


def _pyspark() -> Requirement:
    installed = metadata.version("pyspark")
    ok = installed.startswith("4.3.")
    return Requirement(
        "PySpark", ok, installed, None if ok else f"pip install --force-reinstall tailrace=={__version__}"
    )


def _plugin() -> Requirement:
    jar = plugin_jar()
    with zipfile.ZipFile(jar) as archive:
        stamp = dict(line.split("=", 1) for line in archive.read("tailrace/build.properties").decode().splitlines())
    built_for, installed = stamp["spark"], metadata.version("pyspark")
    detail = f"{stamp['version']}, built for Spark {built_for}, at {jar}"
    if stamp["version"] != __version__:
        return Requirement(
            "Plugin", False, detail, f"the package is {__version__}: run `make plugin` or reinstall tailrace."
        )
    if built_for != installed:
        return Requirement("Plugin", False, detail, f"pip install pyspark=={built_for}")
    return Requirement("Plugin", True, detail)


def _connector() -> Requirement:
    jars = maven.resolve(maven.KAFKA_CONNECTOR)
    return Requirement("Kafka connector", True, f"{len(jars)} jars in {jars[0].parent}")


class _Session:
    """A real session: only starting one proves that the plugin loads and its versions agree."""

    def __init__(self, master: str) -> None:
        self._master = master
        self._spark: Any = None

    def handshake(self) -> Requirement:
        builder = SparkSession.builder.master(self._master).appName("tailrace-doctor")
        builder = RealTimeBuilder.completing(builder.config("spark.ui.enabled", "false"))
        self._spark = start_with_log(builder, log_file("doctor-spark"))
        version = self._spark._jvm.tailrace.BuildInfo.version()
        return Requirement("Session", True, f"Spark {self._spark.version} on {self._master} with plugin {version}")

    def slots(self) -> Requirement:
        if self._spark is None:
            return Requirement("Task slots", False, "unknown: Spark did not start", "see Session above.")
        free = free_slots(self._spark)
        detail = f"{free} free on {self._master}; a query needs the sum over its stages (2 readers + 2 aggregators = 4)"
        if free >= SLOTS_OF_A_SMALL_QUERY:
            return Requirement("Task slots", True, detail)
        local = self._master.startswith("local")
        fix = 'use more slots than cores while developing: .master("local[8]")' if local else "add executors."
        return Requirement("Task slots", free > 0, detail, fix)

    def stop(self) -> None:
        if self._spark is not None:
            self._spark.stop()


def _broker(bootstrap_servers: str | None, kafka_config: Path | None) -> Requirement:
    running = background.status()
    address = cluster_of(bootstrap_servers, kafka_config) or (running.as_admin() if running else None)
    if address is None:
        return Requirement("Kafka broker", True, "none given; `tailrace kafka start` starts one")
    brokers = require_broker(address)
    return Requirement("Kafka broker", True, f"{brokers} at {address}")


def _disk(folder: Path) -> Requirement:
    # A checkpoint's folder is made when the query starts: look at what exists of its path.
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as failure:
        problem = f"{existing} is not writable: {failure.strerror}"
        return Requirement("Checkpoint disk", False, problem, "choose another checkpointLocation.")
    free_gb = shutil.disk_usage(existing).free / 2**30
    ok = free_gb >= LEAST_DISK_GB
    return Requirement(
        "Checkpoint disk", ok, f"{free_gb:.1f} GiB free at {existing}", None if ok else "free some space."
    )
