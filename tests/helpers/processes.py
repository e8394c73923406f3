"""Scripts run as a user would, and what is left of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tailrace._process.process_table import all_processes, find_process
from tests.helpers.waiting import stretched

Completed = subprocess.CompletedProcess[str]


def run_python(
    code: str, *arguments: str, env: dict[str, str] | None = None, stdin: str | None = None, timeout_s: float = 120
) -> Completed:
    """Run a script in a fresh interpreter: a JVM of its own, as in a user's application."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=stretched(timeout_s),
        env={**os.environ, **(env or {})},
        check=False,
    )


def tailrace(*arguments: str, env: dict[str, str] | None = None, timeout_s: float = 120) -> Completed:
    """Run the command line as a user would."""
    return subprocess.run(
        tailrace_command(*arguments),
        capture_output=True,
        text=True,
        timeout=stretched(timeout_s),
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        check=False,
    )


def tailrace_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tailrace", *arguments]


def alive(pid: int) -> bool:
    return find_process(pid) is not None


def command_line(pid: int) -> str:
    """Empty if the process has ended."""
    process = find_process(pid)
    return process.command if process is not None else ""


def environment(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and theirs."""
    children: dict[int, set[int]] = {}
    for process in all_processes():
        children.setdefault(process.parent, set()).add(process.pid)
    found: set[int] = set()
    waiting = {pid}
    while waiting:
        waiting = set().union(*(children.get(parent, set()) for parent in waiting))
        found |= waiting
    return found
