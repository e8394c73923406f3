"""The driver's side of being owned: it ends, with all it has started, when the harness does."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from pathlib import Path

from tailrace.chaos._processes import members_of_session


def end_with_owner(folder: Path | None = None) -> None:
    """Watch standard input, which the harness holds open and never writes to; at its end remove the run's folder."""
    threading.Thread(target=_watch, args=(folder,), daemon=True).start()


def _watch(folder: Path | None) -> None:
    sys.stdin.buffer.read()
    for process in members_of_session(os.getsid(0)):
        if process.pid != os.getpid():
            process.signal(signal.SIGKILL)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
