"""The dashboard's token, if the application sets one on its session builder.

It stays in this process. PySpark puts every option of a builder on the command line of its JVM, which other users can
read, and Spark shows its settings on a page and writes them to the event log, hidden only as long as no one changes
`spark.redaction.regex`.
"""

from __future__ import annotations

from typing import Any

KEY = "spark.tailrace.dashboard.token"

_tokens: dict[str, str] = {}


def take_from(options: dict[str, Any]) -> str | None:
    """Remove the token from a builder's options, and return it."""
    token = options.pop(KEY, None)
    return str(token).strip() or None if token is not None else None


def remember(application: str, token: str) -> None:
    _tokens[application] = token


def of(application: str) -> str | None:
    return _tokens.get(application)
