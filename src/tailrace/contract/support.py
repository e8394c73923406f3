"""The support registry: what can run in Real-Time Mode, and what to do about the rest. Mirrors `SupportEntry.scala`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SupportEntry:
    """One operation or sink; `group` is empty for what a user never writes."""

    group: str
    name: str
    class_name: str
    supported: bool
    overlaps: bool
    """An epoch with it can begin while the one before still runs."""
    note: str
    reason: str
    fix: str
