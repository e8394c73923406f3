"""Checks of arguments that types do not cover."""

from __future__ import annotations

import math

from tailrace.errors import TailraceError


def require_seconds(what: str, seconds: float) -> float:
    """A length of time: not NaN, which no clock ever exceeds, not infinite, not negative."""
    if not math.isfinite(seconds) or seconds < 0:
        raise TailraceError("TAILRACE_BAD_ARGUMENT", f"{what} is {seconds}.", "give a number of seconds, from 0.")
    return seconds


def require_name(what: str, name: str | None) -> str | None:
    """A name, or None for all. An empty one is usually a variable that is not set, and must not mean all."""
    if name is not None and not name.strip():
        raise TailraceError("TAILRACE_BAD_ARGUMENT", f"{what} is empty.", "give a name, or leave it out.")
    return name
