"""Processes as the operating system lists them. The only place that reads /proc."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    command: str

    def signal(self, sign: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, sign)


def find_process(pid: int) -> Process | None:
    """The process with this id, if it still runs."""
    return _from_proc(pid) if (PROC / "self").exists() else _from_ps(pid)


def all_processes() -> Iterator[Process]:
    pids = sorted(int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    return (process for pid in pids if (process := _from_proc(pid)) is not None)


def members_of_session(session: int) -> list[Process]:
    """All running processes of a session, by their id.

    Not those of the process group, which Spark's Python daemons leave, nor only the children: a process whose parent
    has ended has another parent.
    """
    return [process for process in all_processes() if _session_of(process.pid) == session]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _from_proc(pid: int) -> Process | None:
    """None for a zombie: it has ended, and only its parent has not noticed."""
    try:
        state, parent = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
        command = (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    return None if state == "Z" else Process(pid, int(parent), command)


def _from_ps(pid: int) -> Process | None:
    """Without /proc, as on macOS."""
    command = ["ps", "-o", "ppid=,command=", "-p", str(pid)]
    parent, _, said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip().partition(" ")
    return Process(pid, int(parent), said) if parent else None
