"""The state of the grouping keys that a worker has used recently."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Protocol

from tailrace_worker.batched_value_state import ValueCodec
from tailrace_worker.value_size import bytes_of

#: Grouping keys whose state is cached between batches.
MAX_KEYS = 20_000

#: What the cache may take, in estimated bytes.
MAX_BYTES = 32 << 20

#: A key without values: its state, two dictionaries and its place in the cache.
KEY_BYTES = 700

#: The cache is measured at the end of a batch, and whenever this many keys were used.
MEASURED_AFTER_KEYS = 64


class StateVariable(Protocol):
    """A state variable that can write a cached cell."""

    #: None if a cell holds more than one value, which cannot be written in a batch.
    codec: ValueCodec | None

    def write(self, name: str, cell: Any) -> None: ...


class KeyState:
    """The cached state of one grouping key: a cell for each variable, and the variables that are not written yet."""

    __slots__ = ("bytes", "cells", "identity", "key", "unwritten")

    def __init__(self, key: Any, identity: Any) -> None:
        self.key = key
        self.identity = identity
        self.cells: dict[str, Any] = {}
        self.unwritten: dict[str, StateVariable] = {}
        self.bytes = 0

    def growth(self) -> int:
        """The bytes added since the last call."""
        before = self.bytes
        self.bytes = KEY_BYTES + bytes_of(self.key)
        for cell in self.cells.values():
            self.bytes += bytes_of(cell) if cell is None or isinstance(cell, tuple) else cell.bytes
        return self.bytes - before


class KeyCache:
    """Key states by identity, in the order of their last use."""

    def __init__(self) -> None:
        self._states: OrderedDict[Any, KeyState] = OrderedDict()
        #: Keys used since the cache was measured last.
        self._used: dict[Any, KeyState] = {}
        self._bytes = 0

    def __contains__(self, identity: Any) -> bool:
        return identity in self._states

    def use(self, key: Any, identity: Any) -> KeyState:
        """The state of the key, which is new if it is not cached."""
        state = self._states.get(identity)
        if state is None:
            state = self._states[identity] = KeyState(key, identity)
        else:
            self._states.move_to_end(identity)
        self._used[identity] = state
        return state

    def add(self, state: KeyState) -> None:
        self._states[state.identity] = self._used[state.identity] = state

    @property
    def is_overdue(self) -> bool:
        """True if so many keys were used that the cache should be measured before the batch ends."""
        return len(self._used) > MEASURED_AFTER_KEYS

    def evict(self) -> list[KeyState]:
        """Removes the least recently used states above the limits. The caller writes and then clears them."""
        self._bytes += sum(state.growth() for state in self._used.values())
        self._used.clear()
        if self._states:
            # The current key, whose values may still grow.
            latest = next(reversed(self._states.values()))
            self._used[latest.identity] = latest
        evicted = []
        while len(self._states) > MAX_KEYS or (self._bytes > MAX_BYTES and len(self._states) > 1):
            state = self._states.popitem(last=False)[1]
            self._bytes -= state.bytes
            evicted.append(state)
        return evicted
