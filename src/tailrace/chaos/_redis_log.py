"""Reads Redis' append-only file: every write, in the order in which Redis made it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

Command = list[str]


class WriteLog:
    """The fields that entries of streams and hashes were given, in the order of writing.

    Redis writes to the file before it acknowledges (`appendfsync always`). The log must never be rewritten. A server
    that was killed can leave half a command behind, which the next one removes: it is not read before it is whole.

    :param folder: where Redis keeps its append-only files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at = 0

    def read(self) -> Iterator[tuple[str, dict[str, str]]]:
        """The keys and fields that were written since the last call."""
        for file in sorted(self._folder.glob("*.incr.aof")):
            with file.open("rb") as opened:
                opened.seek(self._at)
                data = opened.read()
            read, commands = _whole_steps(data)
            self._at += read
            for command in commands:
                # XADD has the entry's id before its fields.
                skipped = {"XADD": 3, "HSET": 2}.get(command[0].upper())
                if skipped is not None:
                    fields = command[skipped:]
                    yield command[1], dict(zip(fields[::2], fields[1::2], strict=True))


def _whole_steps(data: bytes) -> tuple[int, list[Command]]:
    """The commands that are there as a whole, of a script all or none; and where the next one begins."""
    done, at = 0, 0
    finished: list[Command] = []
    step: list[Command] = []
    in_script = False
    while (parsed := _command(data, at)) is not None:
        at, command = parsed
        name = command[0].upper()
        in_script = name == "MULTI" or (in_script and name != "EXEC")
        step.append(command)
        if not in_script:
            finished += step
            step = []
            done = at
    return done, finished


def _command(data: bytes, at: int) -> tuple[int, Command] | None:
    """The command at a position, and where it ends; None if it is not there as a whole."""
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    words: Command = []
    count, at = int(data[at + 1 : end]), end + 2
    for _ in range(count):
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        length = int(data[at + 1 : end])
        at = end + 2 + length + 2
        if at > len(data):
            return None
        words.append(data[end + 2 : end + 2 + length].decode(errors="replace"))
    return at, words
