"""What cached values, lists and maps have in common.

A variable with a time to live is not cached: the state store decides when a value expires as it is written, and whether
it has expired as it is read. A variable that was deleted is not cached either: each call gets the server's error.
"""

from __future__ import annotations

from typing import Any

from tailrace_worker.batched_value_state import ValueCodec
from tailrace_worker.state_client import EpochStateClient
from tailrace_worker.value_size import bytes_of

#: A list or a map with more entries is not cached.
MAX_ENTRIES = 1_000

#: A larger value, list or map is not cached.
MAX_CELL_BYTES = 256 << 10


class CachedVariable:
    """A state variable whose cells are kept in the client's cache."""

    _client: EpochStateClient
    #: False if no value of the schema is known to come back from the store as it was written.
    _is_cacheable: bool
    codec: ValueCodec | None = None

    def _is_cached(self, name: str) -> bool:
        return self._is_cacheable and name not in self._client.expiring and name not in self._client.deleted

    def _is_too_large(self, cell: Any) -> bool:
        """True if a list or a map should not be cached."""
        return bool(cell.size > MAX_ENTRIES or cell.bytes > MAX_CELL_BYTES)

    def _is_too_long(self, value: Any) -> bool:
        """True if a value should not be cached."""
        return bytes_of(value) > MAX_CELL_BYTES

    def _write_and_forget(self, name: str) -> None:
        self._client.write_variable(name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        self._client.current.cells.pop(name, None)
        self._client.current.unwritten.pop(name, None)
