"""The owner pipe: a child process ends when its owner does, whatever ends the owner.

The owner holds the writing end of the child's standard input open. It closes with the owner, even after SIGKILL, and
the child sees the end of its input. The broker's JVM does the same in `OwnedBroker.scala`.

This file imports only the standard library, because it is also a program: `guarded(command)` runs a command that knows
nothing of the pipe, and kills its whole process group when the owner is gone.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any


def end_owned_process(process: subprocess.Popen[Any], *, within_s: float) -> None:
    """Close the child's standard input, which tells it to end; kill it if it does not."""
    if process.stdin is not None and not process.stdin.closed:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    try:
        process.wait(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def environment_of_child() -> dict[str, str]:
    """Our environment, with the import path of this process for a Python child."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def on_owner_exit(action: Callable[[], None], on_line: Callable[[bytes], None] = lambda _: None) -> None:
    """The child's side: call `action` from a thread when the owner is gone.

    :param on_line: gets each line that the owner writes before that.
    """

    def read() -> None:
        # Not through sys.stdin, whose lock a waiting thread would hold while the interpreter shuts down.
        rest = b""
        while piece := os.read(0, 65_536):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                on_line(line)
        action()

    threading.Thread(target=read, name="owner-pipe", daemon=True).start()


def guarded(command: list[str], *, user: int | None = None) -> list[str]:
    """The command line that runs `command` under a guard, as the leader of a process group of its own.

    :param user: the id of a user, and of its group, as whom a guard of root's runs the command.
    """
    return [sys.executable, "-I", "-S", __file__, "" if user is None else str(user), *command]


def _guard(user: str, command: list[str]) -> int:
    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Signals to the group are for the command; the guard stays to report the exit code. Not SIG_IGN, which the
        # command would inherit.
        signal.signal(sign, lambda _number, _frame: None)
    on_owner_exit(lambda: os.killpg(0, signal.SIGKILL))
    other: dict[str, Any] = (
        {"user": int(user), "group": pwd.getpwuid(int(user)).pw_gid, "extra_groups": []} if user else {}
    )
    code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False, **other).returncode
    # As a shell reports a signal: the guard itself was not killed.
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(_guard(sys.argv[1], sys.argv[2:]))
