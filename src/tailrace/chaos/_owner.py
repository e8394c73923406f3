"""The driver's side of being owned: it ends, with all it has started, when the harness does."""

from __future__ import annotations

import os
import signal
import sys
import threading

from tailrace.chaos._processes import members_of_session


def end_with_owner() -> None:
    """Watch standard input, which the harness holds open and never writes to."""
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    sys.stdin.buffer.read()
    for process in members_of_session(os.getsid(0)):
        if process.pid != os.getpid():
            process.signal(signal.SIGKILL)
    os._exit(1)
