"""Processes as the operating system lists them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import psutil


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
    with contextlib.suppress(psutil.Error):
        return _described(psutil.Process(pid))
    return None


def all_processes() -> Iterator[Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if (described := _described(process)) is not None:
                yield described


def members_of_session(session: int) -> list[Process]:
    """All running processes of a session, by their id.

    The process group would miss Spark's Python daemons, which leave it. The children would miss processes whose parent
    has ended.
    """
    members = [process for process in all_processes() if _session_of(process.pid) == session]
    return sorted(members, key=lambda process: process.pid)


def with_descendants(pid: int) -> list[Process]:
    """A process and all that it has started, also those that have left its session. Empty if it has ended."""
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        return [each for each in map(_described, [root, *root.children(recursive=True)]) if each is not None]
    return []


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _described(process: psutil.Process) -> Process | None:
    """None for a zombie: it has ended, but its parent has not reaped it yet."""
    with process.oneshot():
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return Process(process.pid, process.ppid(), " ".join(process.cmdline()))
