"""The records of the stateful benchmarks. The load's processes import this too, so it must stay light."""

from __future__ import annotations

import json

from tailrace.loadtest.records import Encode

ENCODE_IN_BURSTS = f"{__name__}:encode_in_bursts"
ENCODE_A_KEY_EACH = f"{__name__}:encode_a_key_each"

KEYS_AT_ONCE = 100
ROWS_IN_A_BURST = 10
GROUPS = 10


def encode_in_bursts(number: int, intended_ns: int) -> tuple[bytes, bytes]:
    """A thousand keys, a hundred at a time: each gets ten rows and then pauses while the others get theirs.

    So sessions begin and end, and other queries have the same keys.
    """
    group = number // (KEYS_AT_ONCE * ROWS_IN_A_BURST) % GROUPS
    return _record(group * KEYS_AT_ONCE + number % KEYS_AT_ONCE, number, intended_ns)


def encode_a_key_each(number: int, intended_ns: int) -> tuple[bytes, bytes]:
    return _record(number, number, intended_ns)


def encode_over(keys: int) -> Encode:
    """This many keys in turn."""
    return lambda number, intended_ns: _record(number % keys, number, intended_ns)


def _record(key: int, number: int, intended_ns: int) -> tuple[bytes, bytes]:
    return str(key).encode(), json.dumps({"number": number, "intended_ns": intended_ns}).encode()
