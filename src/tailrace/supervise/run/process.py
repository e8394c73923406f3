"""One start of the application: a process group that ends with us, its output, and what it reports."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from tailrace._process import temporary_folders
from tailrace._process.owner_pipe import guarded
from tailrace.contract.codec import from_json
from tailrace.contract.run_folder import FailureReport
from tailrace.supervise import run_folder
from tailrace.supervise.run.output import Copy, RotatingLog

OUTPUT_ENDS_WITHIN_S = 2.0
ENDS_WITHIN_S = 5.0

Report = TypeVar("Report")


class ApplicationProcess:
    """The running application; `events` gets it when its process has ended.

    We start a guard (`_process/owner_pipe.py`), which leads the process group and kills it if we die.
    """

    def __init__(
        self,
        command: list[str],
        environment: Callable[[Path], dict[str, str]],
        log: RotatingLog,
        *,
        show_spark_log: bool,
        events: queue.SimpleQueue[object],
    ) -> None:
        self.folder = temporary_folders.new_folder("run")  # readable only by this user
        self.began_at = time.time()
        self._guard = subprocess.Popen(
            guarded(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(self.folder),
            # Ctrl-C in the terminal is for us: we drain the application, it is not interrupted.
            start_new_session=True,
        )
        assert self._guard.stdout is not None
        assert self._guard.stderr is not None
        # spark-submit prints Python's output on stdout and Spark's log on stderr.
        self._python = Copy(_binary(self._guard.stdout), log, sys.stdout.buffer)
        self._spark = Copy(_binary(self._guard.stderr), log, sys.stderr.buffer if show_spark_log else None)
        self._python.start()
        self._spark.start()
        self._events = events
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        self._waiter.start()

    @property
    def pid(self) -> int:
        return self._guard.pid

    @property
    def exit_code(self) -> int | None:
        """As in a shell: 128 plus the number of the signal if one ended it."""
        code = self._guard.returncode
        return code if code is None or code >= 0 else 128 - code

    def report(self, kind: type[Report], name: str) -> Report | None:
        """What the application has reported in this file; None if it has not."""
        try:
            return from_json(kind, (self.folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    @property
    def final_error(self) -> str:
        """The error that ended it: as the application reported it, else as it was printed."""
        failure = self.report(FailureReport, run_folder.FAILURE)
        if failure is not None:
            return f"Traceback (most recent call last):\n{failure.type}: {failure.message}"
        # If Python printed nothing, spark-submit failed.
        return self._python.end if self._python.end.strip() else self._spark.end

    @property
    def log_end(self) -> str:
        return f"{self._spark.end[-8_000:]}\n{self._python.end[-8_000:]}"

    def ends_within(self, seconds: float) -> bool:
        self._waiter.join(seconds)
        return not self._waiter.is_alive()

    def end(self, *, within_s: float = ENDS_WITHIN_S) -> None:
        """Ask it to end within that time, then kill what is left. Kills at once without any."""
        if within_s and self._waiter.is_alive():
            self._signal(signal.SIGTERM)
            self.ends_within(within_s)
        if self._waiter.is_alive():
            self._signal(signal.SIGKILL)
            self._waiter.join()

    def delete_folder(self) -> None:
        """Delete what the application reported, the dashboard's token included."""
        temporary_folders.delete_folder(self.folder)

    def _wait(self) -> None:
        # Do not reap it yet: the group's id stays reserved while we kill what is left of it.
        os.waitid(os.P_PID, self._guard.pid, os.WEXITED | os.WNOWAIT)
        self._signal(signal.SIGKILL)
        self._guard.wait()
        for copy in (self._python, self._spark):
            # A process that left the group may still hold the pipe.
            copy.join(OUTPUT_ENDS_WITHIN_S)
        self._events.put(self)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._guard.pid, number)


def _binary(stream: Any) -> BinaryIO:
    return stream  # type: ignore[no-any-return]
