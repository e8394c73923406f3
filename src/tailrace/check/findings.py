"""The findings of a check: each with a code, its place in the query, the problem, and the exact change."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    BLOCKING = "blocking"
    """The query would fail, starve or hold its rows back: it is not started."""
    WARNING = "warning"
    """It runs, and something spoils the latency or grows."""
    NOTE = "note"
    """Worth knowing; nothing to fix."""


@dataclass(frozen=True)
class Finding:
    """One thing that a check found. `code` is stable; texts may improve between releases."""

    code: str
    severity: Severity
    where: str
    """The part of the query, in the user's terms."""
    problem: str
    change: str
    """What to do about it; empty for a note that asks for nothing."""
    line: str | None = None
    """The user's own `file:line`, if it is known."""

    @property
    def place(self) -> str:
        return f"{self.where} ({self.line})" if self.line else self.where

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "severity": self.severity.value}


def blocking(code: str, where: str, problem: str, change: str, line: str | None = None) -> Finding:
    return Finding(code, Severity.BLOCKING, where, problem, change, line)


def warning(code: str, where: str, problem: str, change: str, line: str | None = None) -> Finding:
    return Finding(code, Severity.WARNING, where, problem, change, line)


def note(code: str, where: str, problem: str, change: str = "", line: str | None = None) -> Finding:
    return Finding(code, Severity.NOTE, where, problem, change, line)
