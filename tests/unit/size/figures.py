"""Sizings from figures."""

from __future__ import annotations

from typing import Any

from tailrace.size import (
    Load,
    Sizing,
    parse_stages,
    size_of,
)

# Whatever is estimated today: the arithmetic is the same.
STATELESS_MS, STATEFUL_MS = 250, 700


MEASURED = Load(rows_per_s=50_000, throughput_rows_per_s=200_000, keys=1_000_000)


def sized(stages: str = "8,20", **load: Any) -> Sizing:
    return size_of(parse_stages(stages), Load(**load))
