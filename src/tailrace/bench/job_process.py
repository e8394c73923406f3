"""The process of a system under test: started with its job, watched, and killed with everything it started."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time
from collections import deque
from pathlib import Path

import psutil

from tailrace._process.owner_pipe import guarded
from tailrace._process.process_table import members_of_session
from tailrace._process.redaction import hide_in_text
from tailrace.bench.jobs.job import CHECKPOINT
from tailrace.bench.usage import session_processes
from tailrace.errors import TailraceError

GONE_WITHIN_S = 20
LAST_LINES = 60
# The line that tells what went wrong; the last line is often the end of a stack trace.
_REASON = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)\b: \S.*|\[TAILRACE_\w+\].*")


class JobProcess:
    """:param checkpoint_line: what the system logs when it has made a checkpoint."""

    def __init__(
        self, command: list[str], environment: dict[str, str], log: Path, checkpoint_line: str | None = None
    ) -> None:
        self.log = log
        self.checkpoints: list[float] = []
        """When the system said that it had made a checkpoint, in seconds since 1970."""
        self.started_at = time.monotonic()
        self._checkpoint_line = re.compile(checkpoint_line) if checkpoint_line else None
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._process = subprocess.Popen(
            # The guard kills the job if this process is killed.
            guarded(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # A session of its own, by which all its processes are found again.
            start_new_session=True,
            env=environment,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def processes(self) -> list[psutil.Process]:
        return session_processes(self._process.pid)

    def check(self) -> None:
        """Raise if it has ended."""
        code = self._process.poll()
        if code is not None:
            self._reader.join(timeout=5)
            raise TailraceError("TAILRACE_BENCH_JOB_FAILED", f"the job ended: {self._reason(code)}", f"read {self.log}")

    def kill(self) -> None:
        """SIGKILL to all its processes, until none is left. Safe to call twice."""
        deadline = time.monotonic() + GONE_WITHIN_S
        while (members := members_of_session(self._process.pid)) and time.monotonic() < deadline:
            for member in members:
                member.signal(signal.SIGKILL)
            # Our own child stays a zombie until it is waited for.
            self._process.poll()
            time.sleep(0.01)
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._reader.join(timeout=5)

    def _reason(self, code: int) -> str:
        told = [found[0] for line in self._last_lines if (found := _REASON.search(line))]
        last = next(reversed(self._last_lines), "")
        return hide_in_text(told[-1] if told else f"exit code {code}. {last}".strip())[:400]

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self.log.open("a", encoding="utf-8") as log:
            for line in self._process.stdout:
                log.write(line)
                log.flush()
                self._last_lines.append(line.rstrip())
                if line.startswith(CHECKPOINT):
                    self.checkpoints.append(float(line.removeprefix(CHECKPOINT)))
                elif self._checkpoint_line is not None and self._checkpoint_line.search(line):
                    self.checkpoints.append(time.time())
        self._process.stdout.close()


def files_written(folder: Path, pattern: str) -> list[float]:
    """When the files of checkpoints were written, in seconds since 1970."""
    return sorted(path.stat().st_mtime for path in folder.glob(pattern) if not path.name.startswith("."))
