"""Waits are on conditions with deadlines, never bare sleeps.

A deadline bounds a hang; it is no measurement. So it is two minutes at least, and grows with the load. A test that
compares times does so within `comparing_times`: a comparison that fails on an overloaded machine proves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from tailrace._process.machine_load import load_per_core, stretched

__all__ = ["comparing_times", "let_pass", "load_per_core", "stretched", "until"]

T = TypeVar("T")

# Runnable processes for each core above which a comparison of times may fail.
TOO_BUSY = 3.0


def until(condition: Callable[[], T | None], what: str, *, within_s: float = 120) -> T:
    """Return the condition's first true value; fail the test with `what` if there is none in time.

    :param within_s: on a machine that is not overloaded.
    """
    begun = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        # Computed each time, because the load may have risen since the wait began.
        if time.monotonic() - begun > (deadline_s := stretched(within_s)):
            load = f"load {load_per_core():.1f} per core"
            raise AssertionError(f"not within {deadline_s:.0f} s ({load}): {what} (last value: {value!r})")
        # Less often the longer it takes: a condition that asks a query for its figures is work for both processes.
        time.sleep(min(0.05 + (time.monotonic() - begun) / 20, 0.25))  # noqa: TID251


@contextmanager
def comparing_times() -> Iterator[None]:
    """Around assertions about times: if one fails on an overloaded machine, the test is skipped and says so."""
    try:
        yield
    except AssertionError as failed:
        if (load := load_per_core()) <= TOO_BUSY:
            raise
        pytest.skip(
            f"too busy: {load:.1f} runnable processes per core, at most {TOO_BUSY:g} to compare times: {failed}"
        )


def let_pass(seconds: float) -> None:
    """For tests about time itself: an outage of this length, or rows at this pace. Never to wait for something."""
    time.sleep(seconds)  # noqa: TID251
