"""What the embedded servers have in common: finding a port, and ending a server that runs under a guard."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable

from tailrace._process.ports import free_port, refuse_taken_port
from tailrace.errors import PortTakenError

PORT_ATTEMPTS = 5


def begin_on_port(fixed_port: int | None, begin: Callable[[int], None], stop: Callable[[], None]) -> None:
    """Begin a server on a fixed port or, if there is none, on one that the operating system picks.

    :param begin: configures and starts the server, and waits until it answers.
    :param stop: takes back what `begin` has done so far; called if it fails.
    """
    try:
        for attempt in range(PORT_ATTEMPTS):
            port = free_port() if fixed_port is None else fixed_port
            refuse_taken_port(port)
            try:
                begin(port)
                return
            except PortTakenError:
                # Another program took the port between our check and the server's start.
                stop()
                if fixed_port is not None or attempt + 1 == PORT_ATTEMPTS:
                    raise
    except BaseException:
        stop()
        raise


def end_guarded(guard: subprocess.Popen[bytes], pid: int | None, sign: signal.Signals, *, within_s: float) -> None:
    """Signal the server and wait until it and its guard are gone.

    :param pid: of the server; None if it has not come far enough to have one.
    """
    with contextlib.suppress(ProcessLookupError):
        if pid is not None:
            os.kill(pid, sign)
        else:
            os.killpg(guard.pid, signal.SIGKILL)
    try:
        guard.wait(timeout=within_s)
    except subprocess.TimeoutExpired:
        os.killpg(guard.pid, signal.SIGKILL)
        guard.wait()
    if guard.stdin is not None:
        guard.stdin.close()
