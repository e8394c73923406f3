"""Rounded figures, short enough for a table."""

from __future__ import annotations

import math


def round_up(value: float) -> int:
    """To whole numbers from 1 on, but not for the last bit of a division."""
    return max(1, math.ceil(round(value, 9)))


def short_number(value: float | None) -> str:
    value = value or 0
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def short_duration(seconds: float) -> str:
    """`2 min`: in one unit."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length or seconds == length:
            return f"{seconds / length:.1f}".removesuffix(".0") + f" {unit}"
    return (f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}".removesuffix(".0")) + " s"
