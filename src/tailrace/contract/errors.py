"""The answer of a server to a request that it refuses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ErrorAnswer:
    error: str
