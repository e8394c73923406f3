"""What an application prints: passed on, logged up to a size, and its end kept for the report."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import BinaryIO

LARGEST_BYTES = 20_000_000
KEPT_FILES = 4
REMEMBERED_BYTES = 100_000
PIECE_BYTES = 65_536


class RotatingLog:
    """A thread-safe log file. When it is full, a new one begins and the oldest is deleted."""

    def __init__(self, path: Path, largest_bytes: int = LARGEST_BYTES) -> None:
        self.path = path
        self._largest_bytes = largest_bytes
        self._lock = threading.Lock()
        self._file = path.open("ab")

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
        self._file = self.path.open("ab")

    def _numbered(self, number: int) -> Path:
        # By its end a log file is known as one, and cleared away with the others.
        return self.path if number == 0 else self.path.with_name(f"{self.path.stem}.{number}{self.path.suffix}")


class Copy(threading.Thread):
    """Copies one stream to the log, and to ours if there is one, until it ends."""

    def __init__(self, stream: BinaryIO, log: RotatingLog, onto: BinaryIO | None) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._log = log
        self._onto = onto
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

    def _pass_on(self, piece: bytes) -> None:
        if self._onto is None:
            return
        try:
            self._onto.write(piece)
            self._onto.flush()
        except (OSError, ValueError):
            # Nobody reads it any more (`tailrace run … | head`); the application goes on.
            self._onto = None
