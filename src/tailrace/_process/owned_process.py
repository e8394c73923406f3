"""Ending a process that lives as long as we hold its standard input open."""

from __future__ import annotations

import contextlib
import subprocess
from typing import Any


def end_owned_process(process: subprocess.Popen[Any], *, within_s: float) -> None:
    """Close its standard input, which tells it to end; kill it if it does not."""
    if process.stdin is not None and not process.stdin.closed:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    try:
        process.wait(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
