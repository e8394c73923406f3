"""Just enough of Redis' protocol to run commands."""

from __future__ import annotations

import socket
from typing import Any, BinaryIO

from tailrace._process.ports import HOST
from tailrace.errors import TailraceError

TIMEOUT_S = 60


class RedisReplyError(Exception):
    """Redis answered with an error."""


def run(port: int, user: str, password: str, command: tuple[object, ...]) -> Any:
    """Run a command; a text, a number, a list of these, or None."""
    with socket.create_connection((HOST, port), TIMEOUT_S) as connection:
        connection.sendall(encoded(("AUTH", user, password)) + encoded(command))
        with connection.makefile("rb") as answers:
            _answer(answers)
            return _answer(answers)


def failed(problem: str) -> TailraceError:
    return TailraceError("TAILRACE_STATEMENT_FAILED", f"Redis did not run the command: {problem}.", "correct it.")


def encoded(command: tuple[object, ...]) -> bytes:
    parts = [part if isinstance(part, bytes) else str(part).encode() for part in command]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def _answer(answers: BinaryIO) -> Any:
    line = answers.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("the server closed the connection")
    kind, rest = line[:1], line[1:-2]
    if kind == b"-":
        raise RedisReplyError(rest.decode(errors="replace"))
    if kind == b":":
        return int(rest)
    if kind == b"$":
        if int(rest) < 0:
            return None
        return answers.read(int(rest) + 2)[:-2].decode(errors="surrogateescape")
    if kind == b"*":
        return None if int(rest) < 0 else [_answer(answers) for _ in range(int(rest))]
    return rest.decode()
