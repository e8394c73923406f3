"""Estimates how much memory cached values take."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

# On a 64-bit machine: a tuple's header and, for each of its values, a reference and a small object.
_TUPLE_BYTES = 56
_VALUE_BYTES = 40


def bytes_of(value: Iterable[Any] | None) -> int:
    """About the bytes of a tuple of scalars."""
    total = _TUPLE_BYTES
    for one in value or ():
        # Of all cached types, only strings differ much in size.
        total += sys.getsizeof(one) if type(one) is str else _VALUE_BYTES
    return total
