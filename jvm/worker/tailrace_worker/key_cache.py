"""The state of the grouping keys that a worker has used recently."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Protocol

from tailrace_worker.batched_value_state import ValueCodec

#: Grouping keys whose state is cached between batches; about ten megabytes.
MAX_KEYS = 20_000

#: Values cached for all keys, counting each entry of a list or a map.
MAX_VALUES = 100_000


class StateVariable(Protocol):
    """A state variable that can write a cached cell."""

    #: None if a cell holds more than one value, which cannot be written in a batch.
    codec: ValueCodec | None

    def write(self, name: str, cell: Any) -> None: ...


class KeyState:
    """The cached state of one grouping key: a cell for each variable, and the variables that are not written yet."""

    __slots__ = ("cells", "identity", "key", "size", "unwritten")

    def __init__(self, key: Any, identity: Any) -> None:
        self.key = key
        self.identity = identity
        self.cells: dict[str, Any] = {}
        self.unwritten: dict[str, StateVariable] = {}
        self.size = 0

    def growth(self) -> int:
        """The number of values added since the last call."""
        before = self.size
        self.size = sum(getattr(cell, "size", 1) for cell in self.cells.values())
        return self.size - before


class KeyCache:
    """Key states by identity, in the order of their last use."""

    def __init__(self) -> None:
        self._states: OrderedDict[Any, KeyState] = OrderedDict()
        #: Keys used since their values were counted last.
        self._used: dict[Any, KeyState] = {}
        self._values = 0

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
        """True if so many keys were used that the cache should be evicted before the batch ends."""
        return len(self._used) > MAX_KEYS

    def evict(self) -> list[KeyState]:
        """Removes the least recently used states above the limits. The caller writes and then clears them."""
        self._values += sum(state.growth() for state in self._used.values())
        self._used.clear()
        evicted = []
        while len(self._states) > MAX_KEYS or (self._values > MAX_VALUES and len(self._states) > 1):
            state = self._states.popitem(last=False)[1]
            self._values -= state.size
            evicted.append(state)
        return evicted
