"""What a check, a sizing or the monitor has found: a code, what it is about, the details and the fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tailrace.contract.codec import encode


class Severity(StrEnum):
    """How much a finding matters; the most serious first."""

    BLOCKING = "blocking"
    """The query would fail, starve or hold its rows back, so it is not started."""
    WARNING = "warning"
    """The query runs, but its latency suffers or its state grows."""
    NOTE = "note"
    """Worth knowing; nothing has to be fixed."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found. `code` is stable; texts may improve between releases."""

    code: str
    severity: Severity
    title: str
    """What was found, or the part of the query that it is about, in the user's terms."""
    detail: str
    """The problem, or the figures that show it."""
    fix: str = ""
    """What to do about it; empty for a note that asks for nothing."""
    line: str | None = None
    """The user's own `file:line`, if it is known."""

    @property
    def heading(self) -> str:
        """The title and, if known, the line."""
        return f"{self.title} ({self.line})" if self.line else self.title

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        encoded: dict[str, Any] = encode(self)
        return encoded


def blocking(code: str, title: str, detail: str, fix: str, line: str | None = None) -> Finding:
    return Finding(code, Severity.BLOCKING, title, detail, fix, line)


def warning(code: str, title: str, detail: str, fix: str, line: str | None = None) -> Finding:
    return Finding(code, Severity.WARNING, title, detail, fix, line)


def note(code: str, title: str, detail: str, fix: str = "", line: str | None = None) -> Finding:
    return Finding(code, Severity.NOTE, title, detail, fix, line)


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of the same severity keep their order."""
    order = list(Severity)
    return sorted(findings, key=lambda finding: order.index(finding.severity))
