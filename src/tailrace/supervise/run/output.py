"""What an application prints: passed on, logged without secrets up to a size, and its end kept for the report."""

from __future__ import annotations

import codecs
import contextlib
import os
import threading
from pathlib import Path
from typing import BinaryIO

from tailrace._process.console import visible_controls
from tailrace._process.paths import private_handle
from tailrace._process.redaction import LineRedaction

LARGEST_BYTES = 20_000_000
KEPT_FILES = 4
REMEMBERED_BYTES = 100_000
PIECE_BYTES = 65_536
LONGEST_LINE_BYTES = 65_536


class RotatingLog:
    """A thread-safe log file. When it is full, a new one begins and the oldest is deleted."""

    def __init__(self, path: Path, largest_bytes: int = LARGEST_BYTES) -> None:
        self.path = path
        self._largest_bytes = largest_bytes
        self._lock = threading.Lock()
        self._file = self._opened()

    def write(self, piece: bytes) -> None:
        # A full disk must not end the application.
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._file.tell() + len(piece) > self._largest_bytes:
                self._rotate()
            self._file.write(piece)
            self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for number in range(KEPT_FILES - 1, 0, -1):
            older, newer = self._numbered(number), self._numbered(number - 1)
            if newer.exists():
                newer.replace(older)
        self._file = self._opened()

    def _opened(self) -> BinaryIO:
        return os.fdopen(private_handle(self.path, os.O_APPEND), "ab")

    def _numbered(self, number: int) -> Path:
        # By its end a log file is known as one, and cleared away with the others.
        return self.path if number == 0 else self.path.with_name(f"{self.path.stem}.{number}{self.path.suffix}")


class Copy(threading.Thread):
    """Copies one stream to the log, and to ours if there is one, until it ends."""

    def __init__(self, stream: BinaryIO, log: RotatingLog, onto: BinaryIO | None) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._log = _RedactedLog(log)
        self._onto = onto
        # A record that the application prints must not steer the terminal. A pipe or a file gets what was printed.
        self._terminal = _ForTerminal() if onto is not None and onto.isatty() else None
        self._end = b""

    @property
    def end(self) -> str:
        """The last of what came."""
        return self._end.decode(errors="replace")

    def run(self) -> None:
        with contextlib.suppress(ValueError, OSError):
            while piece := self._stream.read1(PIECE_BYTES):  # type: ignore[attr-defined]
                self._log.write(piece)
                self._end = (self._end + piece)[-REMEMBERED_BYTES:]
                self._pass_on(piece)
        self._log.end()

    def _pass_on(self, piece: bytes) -> None:
        if self._onto is None:
            return
        try:
            self._onto.write(self._terminal.shown(piece) if self._terminal else piece)
            self._onto.flush()
        except (OSError, ValueError):
            # The reader is gone (`tailrace run … | head`); the application continues.
            self._onto = None


class _RedactedLog:
    """Hides secrets line by line: a line may come in several pieces."""

    def __init__(self, log: RotatingLog) -> None:
        self._log = log
        self._redaction = LineRedaction()
        self._begun = b""

    def write(self, piece: bytes) -> None:
        *lines, self._begun = (self._begun + piece).split(b"\n")
        if len(self._begun) > LONGEST_LINE_BYTES:
            # It may be a progress bar without an end.
            lines, self._begun = [*lines, self._begun], b""
        if lines:
            self._log.write(b"".join(self._hidden(line + b"\n") for line in lines))

    def end(self) -> None:
        if self._begun:
            self._log.write(self._hidden(self._begun))

    def _hidden(self, line: bytes) -> bytes:
        text = line.decode("utf-8", errors="surrogateescape")
        return self._redaction.hide(text).encode("utf-8", errors="surrogateescape")


class _ForTerminal:
    """Shows control characters instead of sending them; a character may come in two pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def shown(self, piece: bytes) -> bytes:
        return visible_controls(self._decoder.decode(piece)).encode("utf-8", errors="replace")
