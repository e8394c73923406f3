"""No secrets in reports."""

from __future__ import annotations

import re

HIDDEN = "*********"
# As Spark's own spark.redaction.regex, and what else is a secret by its name.
_SECRET = r"secret|password|passwd|token|(?:access|api)[._-]?key|credential|jaas"  # noqa: S105
_KEY = re.compile(_SECRET, re.IGNORECASE)
_IN_TEXT = re.compile(
    rf"""([\w.\-]*(?:{_SECRET})[\w.\-]*["']?\s*[=:]\s*)("[^"\n]*"|'[^'\n]*'|[^\s,;)}}\]]+)""", re.IGNORECASE
)


def hide_in_command(words: list[str]) -> list[str]:
    """A command line: `--conf key=value` and `--option value` whose name is that of a secret."""
    return [_hidden(word, before) for before, word in zip(["", *words], words, strict=False)]


def hide_in_text(text: str) -> str:
    """What an application or Spark prints: `password=…`, `"token": "…"`, the value that follows."""
    return _IN_TEXT.sub(lambda found: f"{found[1]}{HIDDEN}", text)


def _hidden(word: str, before: str) -> str:
    name, equals, value = word.removeprefix("--conf=").partition("=")
    if equals and value and _KEY.search(name):
        return f"{word.removesuffix(value)}{HIDDEN}"
    return HIDDEN if before.startswith("-") and "=" not in before and _KEY.search(before) else word
