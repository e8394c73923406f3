"""The process that runs the queries: started, killed, stopped and started again."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tailrace._process.owner_pipe import environment_of_child
from tailrace._process.process_table import Process, members_of_session
from tailrace.chaos._events import Event, heard

GONE_WITHIN_S = 20


class Driver:
    """One process after the other, all with the same command unless it is changed in between."""

    def __init__(self, command: Callable[[], list[str]], log: Path, on_event: Callable[[Event], None]) -> None:
        self._command = command
        self.log = log
        self._on_event = on_event
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self.started_at = 0.0

    def start(self) -> None:
        self.started_at = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", *self._command()],
            stdin=subprocess.PIPE,
            # Through a pipe and not into a file: a disk that is full for the driver is not for us.
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # A session of its own, by which all its processes are found again.
            start_new_session=True,
            env=environment_of_child(),
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    @property
    def is_running(self) -> bool:
        """Whether it was started and not killed; it may have ended by itself."""
        return self._process is not None

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def processes(self) -> list[Process]:
        return members_of_session(self._process.pid) if self._process is not None else []

    def kill(self) -> None:
        """SIGKILL to every process of the driver, until none is left; safe to call twice."""
        if self._process is None:
            return
        deadline = time.monotonic() + GONE_WITHIN_S
        # The driver first: Python workers that go before it would be news to it.
        while self.signal(signal.SIGKILL) and time.monotonic() < deadline:
            time.sleep(0.01)
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._reader is not None:
            self._reader.join(timeout=5)
        self._process = None

    def signal(self, sign: signal.Signals) -> int:
        """To every process of the driver; gives their number."""
        processes = self.processes()
        for process in processes:
            process.signal(sign)
        return len(processes)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with ExitStack() as stack:
            log, path = stack.enter_context(self.log.open("a", encoding="utf-8")), self.log
            for line in process.stdout:
                if path != self.log:
                    # The next piece of a run has a log of its own.
                    stack.close()
                    log, path = stack.enter_context(self.log.open("a", encoding="utf-8")), self.log
                log.write(line)
                log.flush()
                event = heard(line)
                if event is not None:
                    self._on_event(event)
        process.stdout.close()
