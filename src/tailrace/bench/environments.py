"""The environments of the systems: Python packages and jars. Peers get a virtual environment each, in the cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pyspark

from tailrace._process.console import working
from tailrace._process.owner_pipe import environment_of_child
from tailrace._process.paths import cache_folder, log_file
from tailrace._spark import maven
from tailrace._spark.java import require_java
from tailrace._version import __version__
from tailrace.bench.systems import System
from tailrace.errors import TailraceError

PACKAGE = "bench_jobs"
INSTALL_WITHIN_S = 1200
READY = ".ready"


def prepare(system: System) -> None:
    """Install what the system needs, if it is not there yet."""
    python_of(system)
    jars_of(system)
    if system.runtime == "spark":
        # Not within a measured start: `configure` would fetch them there.
        maven.resolve(maven.KAFKA_CONNECTOR)


def python_of(system: System) -> str:
    """The interpreter that runs the system."""
    if not system.packages:
        return sys.executable
    key = hashlib.sha256(repr((system.packages, platform.python_version())).encode()).hexdigest()[:12]
    folder = cache_folder("bench") / f"{_package(system)}-{key}"
    python = folder / "bin" / "python"
    if not (folder / READY).exists():
        with (cache_folder("bench") / "lock").open("w") as lock, working(f"Installing {', '.join(system.packages)}"):
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another process may have installed it meanwhile.
            if not (folder / READY).exists():
                _install(folder, python, system)
    return str(python)


def _install(folder: Path, python: Path, system: System) -> None:
    # What an interrupted installation left is of no use.
    shutil.rmtree(folder, ignore_errors=True)
    log = log_file("bench-install")
    commands = (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *system.packages],
    )
    with log.open("ab") as output:
        for command in commands:
            try:
                subprocess.run(
                    command,
                    check=True,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=INSTALL_WITHIN_S,
                )
            except (subprocess.SubprocessError, OSError) as failure:
                lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
                reason = next((line for line in reversed(lines) if "ERROR" in line), str(failure))
                raise TailraceError(
                    "TAILRACE_PEER_NOT_INSTALLED",
                    f"{' '.join(system.packages)} cannot be installed for Python {platform.python_version()}: {reason}",
                    f"read pip's output: {log}",
                ) from None
    (folder / READY).touch()


def jars_of(system: System) -> list[str]:
    if system.jars is None:
        return []
    jar_set = {"spark": maven.KAFKA_CONNECTOR, "flink": maven.FLINK_CONNECTOR}[system.jars]
    return [str(jar) for jar in maven.resolve(jar_set)]


def environment_of(system: System, staging: Path) -> dict[str, str]:
    """The environment of its process, in which `staging` has the package of the jobs."""
    if not system.packages:
        inherited = environment_of_child()
        path = f"{staging}{os.pathsep}{inherited['PYTHONPATH']}"
        return {**inherited, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    # Without our own packages, which are for another set of versions.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    java_home = Path(require_java().command).resolve().parents[1]
    # An interpreter inside Flink's JVM does not know of the virtual environment.
    packages = next(Path(python_of(system)).parents[1].glob("lib/python*/site-packages"))
    return {"JAVA_HOME": str(java_home), **inherited, "PYTHONPATH": f"{staging}{os.pathsep}{packages}"}


def stage(jobs: Path, folder: Path) -> Path:
    """A folder in which the jobs are a package of their own, for interpreters without Tailrace."""
    staging = folder / "jobs"
    staging.mkdir()
    (staging / PACKAGE).symlink_to(jobs, target_is_directory=True)
    return staging


def version_of(system: System) -> str:
    if system.name == "tailrace":
        return f"{__version__} on Spark {pyspark.__version__}"
    if system.runtime == "spark":
        return pyspark.__version__
    if not system.packages:
        return f"confluent-kafka {metadata.version('confluent-kafka')}"
    name = _package(system)
    code = f"from importlib.metadata import version; print(version({name!r}))"
    answer = subprocess.run([python_of(system), "-c", code], capture_output=True, text=True, check=False)
    return f"{name} {answer.stdout.strip() or 'unknown'}"


def _package(system: System) -> str:
    return system.packages[0].partition("==")[0]
