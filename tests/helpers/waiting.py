"""Waits are on conditions with deadlines, never bare sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T | None], what: str, *, within_s: float = 30) -> T:
    """The condition's first true value; fails the test with `what` if it does not come in time."""
    deadline = time.monotonic() + within_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s: {what} (last value: {value!r})")
        time.sleep(0.05)  # noqa: TID251


def let_pass(seconds: float) -> None:
    """For tests about time itself: an outage of this length, or rows at this pace. Never to wait for something."""
    time.sleep(seconds)  # noqa: TID251
