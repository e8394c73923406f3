"""One life of the application: a process group that ends with us, its output, its notes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from tailrace.supervise import notes
from tailrace.supervise.run.output import Copy, RotatingLog

KEEPER = Path(__file__).with_name("keeper.py")
OUTPUT_ENDS_WITHIN_S = 2.0
POLITE_S = 5.0


class Application:
    """The running application; `events` gets it when its process has ended.

    The process that we start is the keeper (`keeper.py`), which leads the group and holds the end of a pipe of ours.
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
        self.notes = Path(tempfile.mkdtemp(prefix="tailrace-run-"))  # only this user can read it
        self.began_at = time.time()
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(KEEPER), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(self.notes),
            # Ctrl-C in the terminal is for us: the application is drained, not interrupted.
            start_new_session=True,
        )
        assert self._keeper.stdout is not None
        assert self._keeper.stderr is not None
        # spark-submit prints all that Python prints on its standard output, and Spark's log on the other.
        self._python = Copy(_binary(self._keeper.stdout), log, sys.stdout.buffer)
        self._spark = Copy(_binary(self._keeper.stderr), log, sys.stderr.buffer if show_spark_log else None)
        self._python.start()
        self._spark.start()
        self._events = events
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        self._waiter.start()

    @property
    def pid(self) -> int:
        return self._keeper.pid

    @property
    def exit_code(self) -> int | None:
        """As a shell has it: 128 and the signal if one ended it."""
        code = self._keeper.returncode
        return code if code is None or code >= 0 else 128 - code

    def note(self, name: str) -> Any:
        """What the application has told; None if it has not."""
        try:
            return json.loads((self.notes / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    @property
    def last_words(self) -> str:
        """The error that ended it: as it was told, else as it was printed."""
        failure = self.note(notes.FAILURE)
        if failure is not None:
            return f"Traceback (most recent call last):\n{failure['type']}: {failure['message']}"
        # Without a word from Python it was spark-submit that failed.
        return self._python.end if self._python.end.strip() else self._spark.end

    @property
    def log_end(self) -> str:
        return f"{self._spark.end[-8_000:]}\n{self._python.end[-8_000:]}"

    def ends_within(self, seconds: float) -> bool:
        self._waiter.join(seconds)
        return not self._waiter.is_alive()

    def end(self, *, politely_s: float = POLITE_S) -> None:
        """Ask it to end, then kill what is left."""
        if politely_s and self._waiter.is_alive():
            self._signal(signal.SIGTERM)
            self.ends_within(politely_s)
        if self._waiter.is_alive():
            self._signal(signal.SIGKILL)
            self._waiter.join()

    def forget(self) -> None:
        """Its notes hold the token."""
        shutil.rmtree(self.notes, ignore_errors=True)

    def _wait(self) -> None:
        # Not reaped yet, so that the group's number is still its own while we look for what is left of it.
        os.waitid(os.P_PID, self._keeper.pid, os.WEXITED | os.WNOWAIT)
        self._signal(signal.SIGKILL)
        self._keeper.wait()
        for copy in (self._python, self._spark):
            # A process that left the group may hold the other end.
            copy.join(OUTPUT_ENDS_WITHIN_S)
        self._events.put(self)

    def _signal(self, sign: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._keeper.pid, sign)


def _binary(stream: Any) -> BinaryIO:
    return stream  # type: ignore[no-any-return]
