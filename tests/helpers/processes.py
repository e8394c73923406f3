"""Scripts run as a user would, and what is left of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
        timeout=timeout_s,
        env={**os.environ, **(env or {})},
        check=False,
    )


def tailrace(*arguments: str, env: dict[str, str] | None = None, timeout_s: float = 120) -> Completed:
    """Run the command line as a user would."""
    return subprocess.run(
        tailrace_command(*arguments),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        check=False,
    )


def tailrace_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tailrace", *arguments]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def command_line(pid: int) -> str:
    """Nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def descendants(pid: int) -> set[int]:
    """All processes that a process has started, and theirs."""
    parents: dict[int, set[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, set()).add(int(entry.name))
    found: set[int] = set()
    waiting = {pid}
    while waiting:
        children = set().union(*(parents.get(parent, set()) for parent in waiting))
        found |= children
        waiting = children
    return found
