"""The records that travel through the pipeline under test, and how the observer recognizes them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable
from typing import Any, Protocol

Encode = Callable[[int, int], tuple[bytes | None, bytes]]
"""(record number, intended send time in ns) → (Kafka key, Kafka value)."""

Decode = Callable[[bytes | None, bytes], list[tuple[int, int]]]
"""(Kafka key, Kafka value) of an output record → the (number, intended time) of each input it answers.

Usually one; several where the pipeline folds inputs into one output, as a micro-batch aggregation does.
"""


IsAnswered = Callable[[int], bool]
"""Whether the pipeline answers the record with this number. A filter leaves some unanswered."""


class Reader(Protocol):
    """Reads a store, such as a table, as a service would: what the observer asks instead of a topic."""

    def read(self) -> Iterable[int]:
        """The numbers of the records whose results have become visible since the last call.

        It is called again at once, or after a millisecond if there was nothing. A number that is returned again is a
        duplicate.
        """

    def close(self) -> None: ...


def encode_json(number: int, intended_ns: int) -> tuple[bytes, bytes]:
    return str(number % 100).encode(), json.dumps({"number": number, "intended_ns": intended_ns}).encode()


def decode_json(_key: bytes | None, value: bytes) -> list[tuple[int, int]]:
    record = json.loads(value)
    return [(int(record["number"]), int(record["intended_ns"]))]


def answers_all(_number: int) -> bool:
    return True


def new_function(reference: str, options: dict[str, Any]) -> Any:
    """The named function or, if it is a class, an instance made with the options."""
    named = load_function(reference)
    return named(**options) if isinstance(named, type) else named


def load_function(reference: str) -> Any:
    """The function at "module:name". Processes get functions by name, never by pickle."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)
