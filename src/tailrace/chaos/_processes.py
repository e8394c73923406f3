"""Processes as the operating system lists them: who belongs to a driver, and what each of them is."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

# Whatever starts Python workers, Spark's own daemon or Tailrace's, is named so on its command line.
PYTHON_DAEMONS = ("pyspark.daemon", "tailrace_worker.daemon")
EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    command: str

    def signal(self, sign: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, sign)


def members_of_session(session: int) -> list[Process]:
    """All processes of a session that still run.

    Not those of a process group, from which Spark's Python daemons take leave, nor only the children: those of a
    process that is gone have another parent.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, parent, _, its_session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if int(its_session) == session and state != "Z":
            found.append(Process(int(entry.name), int(parent), command))
    return sorted(found, key=lambda process: process.pid)


def python_workers(processes: list[Process]) -> list[Process]:
    """The processes in which Python functions run: the daemons' children."""
    daemons = {process.pid for process in processes if any(name in process.command for name in PYTHON_DAEMONS)}
    return [process for process in processes if process.parent in daemons]


def executors(processes: list[Process]) -> list[Process]:
    # The shell that starts a JVM repeats its command line.
    return [process for process in processes if EXECUTOR in process.command and "java" in process.command.split()[0]]


def java_processes(processes: list[Process]) -> list[Process]:
    return [process for process in processes if process.command.split(" ")[0].endswith("java")]
