"""The processes of a load test. They exchange JSON lines with their owner and end with it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from tailrace._process.owner_pipe import end_owned_process, environment_of_child, on_owner_exit
from tailrace.errors import TailraceError

Message = dict[str, Any]


class Child:
    """The owner's side of a child process."""

    def __init__(self, module: str, config: Message, on_message: Callable[[Message], None]) -> None:
        self._module = module
        self._reason: str | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment_of_child(),
        )
        self._reader = threading.Thread(target=self._read, args=(on_message,), daemon=True)
        self._reader.start()
        self.tell(config)

    def tell(self, message: Message) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            self._process.wait()
            self.raise_if_failed()

    def raise_if_failed(self) -> None:
        code = self._process.poll()
        if code not in (None, 0):
            self._reader.join(timeout=5)
            raise TailraceError(
                "TAILRACE_HARNESS_FAILED",
                f"{self._module} ended: {self._reason or f'exit code {code}'}.",
                "check that the broker is reachable and the topics exist.",
            )

    def close(self) -> None:
        end_owned_process(self._process, within_s=5)
        self._reader.join(timeout=5)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self, on_message: Callable[[Message], None]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message["event"] == "failed":
                self._reason = message["reason"]
            else:
                on_message(message)


class Owner:
    """The child's side: orders from standard input, read without blocking."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[Message] = queue.SimpleQueue()
        # Without an owner, no report is read.
        on_owner_exit(lambda: os._exit(0), on_line=lambda line: self._orders.put(json.loads(line)))
        self.config = self._orders.get()

    def next_order(self) -> Message | None:
        try:
            return self._orders.get_nowait()
        except queue.Empty:
            return None

    def tell(self, message: Message) -> None:
        print(json.dumps(message), flush=True)


def serve(run: Callable[[Owner], None]) -> None:
    """A child's main function. Failures are reported to the owner, which shows them to the user."""
    owner = Owner()
    try:
        run(owner)
    except Exception as failure:
        owner.tell({"event": "failed", "reason": str(failure) or repr(failure)})
        sys.exit(1)
