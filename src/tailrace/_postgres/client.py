"""Just enough of PostgreSQL's protocol to run statements over the server's private socket."""

from __future__ import annotations

import socket
import struct
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from tailrace.errors import TailraceError

PROTOCOL = 196_608
TIMEOUT_S = 60


class Connection:
    def __init__(self, socket_file: Path, user: str, database: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT_S)
        try:
            self._socket.connect(str(socket_file))
            parameters = b"".join(f"{part}\0".encode() for part in ("user", user, "database", database)) + b"\0"
            self._socket.sendall(struct.pack("!ii", len(parameters) + 8, PROTOCOL) + parameters)
            self._answers = self._socket.makefile("rb")
            _read_until_ready(self._answers)
        except BaseException:
            self._socket.close()
            raise

    def run(self, sql: str) -> list[tuple[str | None, ...]]:
        """Run statements separated by semicolons, as one transaction; the rows of all of them, as texts."""
        query = sql.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", len(query) + 4) + query)
        return _read_until_ready(self._answers)

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


def run(socket_file: Path, user: str, database: str, sql: str) -> list[tuple[str | None, ...]]:
    """Run statements over a connection of their own."""
    with closing(Connection(socket_file, user, database)) as connection:
        return connection.run(sql)


def _read_until_ready(answers: BinaryIO) -> list[tuple[str | None, ...]]:
    rows: list[tuple[str | None, ...]] = []
    problem = None
    while True:
        head = answers.read(5)
        if len(head) < 5:
            raise ConnectionError(problem or "the server closed the connection")
        kind, length = head[:1], struct.unpack("!i", head[1:])[0]
        body = answers.read(length - 4)
        if kind == b"D":
            rows.append(_values(body))
        elif kind == b"E":
            fields = {field[:1]: field[1:] for field in body.rstrip(b"\0").split(b"\0")}
            problem = fields.get(b"M", b"").decode(errors="replace")
            if fields.get(b"S") == b"FATAL":
                raise ConnectionError(problem)
        elif kind == b"Z":
            if problem is not None:
                raise TailraceError(
                    "TAILRACE_STATEMENT_FAILED", f"PostgreSQL did not run the statement: {problem}.", "correct it."
                )
            return rows


def _values(body: bytes) -> tuple[str | None, ...]:
    values: list[str | None] = []
    at = 2
    for _ in range(struct.unpack("!h", body[:2])[0]):
        length = struct.unpack("!i", body[at : at + 4])[0]
        at += 4
        values.append(None if length < 0 else body[at : at + length].decode())
        at += max(length, 0)
    return tuple(values)
