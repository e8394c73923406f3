"""How a driver under test ends when the harness does, with every process that it started."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from tailrace._process.owner_pipe import on_owner_exit
from tailrace._process.process_table import members_of_session


def end_with_owner(folder: Path | None = None) -> None:
    """When the harness is gone, kill the driver's session, remove the run's folder, and exit."""

    def end() -> None:
        for process in members_of_session(os.getsid(0)):
            if process.pid != os.getpid():
                process.signal(signal.SIGKILL)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    on_owner_exit(end)
