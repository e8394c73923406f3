"""Numbers, durations and lists as text."""

from __future__ import annotations

import re


def size_in_words(size_bytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "bytes" or size_bytes >= 10 else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


def duration_in_words(milliseconds: float) -> str:
    """As Spark's triggers take it: `5 minutes`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} milliseconds"
    if milliseconds % 1000:
        return f"{milliseconds / 1000:g} seconds"
    parts, seconds = [], int(milliseconds) // 1000
    for unit, length in (("hour", 3600), ("minute", 60), ("second", 1)):
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(parts)


def first_sentence(message: str) -> str:
    """Of a message of Spark's, without the plan that it may append."""
    first = re.split(r";?\n", message.strip(), maxsplit=1)[0]
    return first if first.endswith(".") else f"{first}."


def listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
