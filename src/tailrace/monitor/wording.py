"""Names and numbers for users to read."""

from __future__ import annotations

import re


def source_name(source: str) -> str:
    """`payments` for what Spark calls `KafkaV2[Subscribe[payments]]`."""
    found = re.fullmatch(r"KafkaV2\[\w+\[(.*)\]\]", source)
    return found[1] if found else source


def milliseconds(duration: float) -> str:
    if duration >= 1000:
        return f"{duration / 1000:.1f} s"
    return f"{duration:.0f} ms" if duration >= 10 else f"{duration:.1f} ms"


def counted(number: int, one: str, several: str | None = None) -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"


def listed(names: list[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
