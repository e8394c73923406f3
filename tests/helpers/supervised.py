"""`tailrace run` as a process, as an operator sees it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from tailrace._process.machine_load import stretched
from tailrace._process.process_table import all_processes
from tests.helpers.processes import environment, tailrace_command
from tests.helpers.waiting import until

MARK = "TEST_OF_TAILRACE_RUN"

# Replaces Spark's: records its arguments and runs the script, so a test needs no JVM.
SPARK_SUBMIT = f"""#!{sys.executable}
import json, os, sys
given = sys.argv[1:]
with open(os.environ["LIVES"], "a") as lives:
    lives.write(json.dumps(given) + "\\n")
script = next(place for place, word in enumerate(given) if word.endswith("app.py"))
print("this is Spark's log", file=sys.stderr, flush=True)
os.dup2(1, 2)
os.execv(sys.executable, [sys.executable, *given[script:]])
"""


class SupervisedRun:
    """A run in the background. Leaving the `with` block ends what a failed test left behind."""

    def __init__(self, *arguments: str, folder: Path, env: dict[str, str] | None = None) -> None:
        self.incidents = folder / "incidents"
        self._mark = str(folder)
        self._printed = folder / "printed"
        self._said = folder / "said"
        command = tailrace_command("run", "--backoff", "0.2", "--incidents", str(self.incidents), *arguments)
        with self._printed.open("wb") as printed, self._said.open("wb") as said:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=said,
                env={**os.environ, "TAILRACE_CACHE": str(folder / "cache"), MARK: self._mark, **(env or {})},
            )

    def __enter__(self) -> SupervisedRun:
        return self

    def __exit__(self, *_failure: object) -> None:
        self.process.kill()
        self.process.wait()
        for pid in self._left_behind():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @property
    def printed(self) -> str:
        return self._printed.read_text(encoding="utf-8")

    @property
    def said(self) -> str:
        return self._said.read_text(encoding="utf-8")

    @property
    def log(self) -> Path:
        return Path(self._word_behind("Log: "))

    @property
    def health_url(self) -> str:
        return self._word_behind("Health: ").removesuffix("/health")

    def ask(self, page: str = "health") -> tuple[int, dict[str, Any]]:
        try:
            with urllib.request.urlopen(f"{self.health_url}/{page}", timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def state(self) -> str:
        return str(self.ask()[1]["state"])

    def ends(self, *, within_s: float) -> int:
        return self.process.wait(stretched(within_s))

    def reports(self) -> list[dict[str, Any]]:
        return [json.loads(file.read_text()) for file in sorted(self.incidents.glob("*.json"))]

    def _left_behind(self) -> list[int]:
        """All processes with our mark in their environment, whatever their parent is now."""
        found = []
        for process in all_processes():
            with contextlib.suppress(psutil.Error):
                if environment(process.pid).get(MARK) == self._mark:
                    found.append(process.pid)
        return found

    def _word_behind(self, label: str) -> str:
        found = until(lambda: re.search(rf"{label}(\S+)", self.said), f"'{label}' is said")
        return found[1]
