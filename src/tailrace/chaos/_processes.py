"""What the processes of a driver are, by their command lines."""

from __future__ import annotations

from tailrace._process.process_table import Process

# The daemons that start Python workers, Spark's own and Tailrace's.
PYTHON_DAEMONS = ("pyspark.daemon", "tailrace_worker.daemon")
EXECUTOR = "CoarseGrainedExecutorBackend"


def python_workers(processes: list[Process]) -> list[Process]:
    """The processes that run Python functions: the daemons' children."""
    daemons = {process.pid for process in processes if any(name in process.command for name in PYTHON_DAEMONS)}
    return [process for process in processes if process.parent in daemons]


def executors(processes: list[Process]) -> list[Process]:
    # The shell that starts a JVM repeats its command line.
    return [process for process in processes if EXECUTOR in process.command and "java" in process.command.split()[0]]


def java_processes(processes: list[Process]) -> list[Process]:
    return [process for process in processes if process.command.split(" ")[0].endswith("java")]
