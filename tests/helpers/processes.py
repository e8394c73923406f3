"""Runs scripts as a user would, and finds what they leave behind."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil

from tailrace._process.machine_load import stretched
from tailrace._process.process_table import find_process

Completed = subprocess.CompletedProcess[str]


def run_python(
    code: str, *arguments: str, env: dict[str, str] | None = None, stdin: str | None = None, timeout_s: float = 120
) -> Completed:
    """Run a script in a fresh interpreter with its own JVM, as in a user's application."""
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
    return dict(psutil.Process(pid).environ())


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and their descendants."""
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()
