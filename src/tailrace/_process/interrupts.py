"""Delay Ctrl-C while it would leave something behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Let a short piece of work finish before Ctrl-C or SIGTERM ends it.

    PySpark's launch of its JVM is one example: if interrupted, PySpark forgets the JVM, which keeps running without an
    owner.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[tuple[int, FrameType | None]] = []
    signs = (signal.SIGINT, signal.SIGTERM)
    before = {sign: signal.signal(sign, lambda number, frame: caught.append((number, frame))) for sign in signs}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
        if caught:
            signal.raise_signal(caught[0][0])
