"""A cached map variable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.map_state_client import MapStateClient
from pyspark.sql.types import Row, StructType

from tailrace_worker.cached_variable import CachedVariable
from tailrace_worker.exact_values import ExactValues, InexactError
from tailrace_worker.state_client import EpochStateClient
from tailrace_worker.value_size import bytes_of

_UNKNOWN: Any = object()


class MapCell:
    """The known entries of a map, or all of them."""

    __slots__ = ("bytes", "changed", "is_complete", "is_new", "order", "values")

    def __init__(self) -> None:
        #: By the user's key; None if the store is known to have no value.
        self.values: dict[Any, Any] = {}
        #: True if keys that are not in `values` are known to have no value.
        self.is_complete = False
        #: The keys in the store's order; None if keys were added or removed since it was read.
        self.order: list[Any] | None = None
        self.changed: dict[Any, None] = {}
        #: True if it replaces what is stored.
        self.is_new = False
        self.bytes = 0

    @property
    def size(self) -> int:
        return len(self.values)

    def set(self, key: Any, value: Any) -> None:
        if key in self.values:
            self.bytes -= bytes_of(self.values[key])
        else:
            self.bytes += bytes_of(key)
        self.values[key] = value
        self.bytes += bytes_of(value)


class CachedMap(CachedVariable, MapStateClient):
    def __init__(
        self, client: EpochStateClient, user_key_schema: StructType | str, value_schema: StructType | str
    ) -> None:
        super().__init__(client, user_key_schema, value_schema)
        self._client = client
        self._exact_key = ExactValues(self.user_key_schema, as_keys=True)
        self._exact = ExactValues(self.value_schema)
        self._is_cacheable = self._exact_key.possible and self._exact.possible
        self._row = Row(*self.value_schema.names)

    def iterate_keys_or_values(self, state_name: str, is_key: bool) -> Iterator[Any]:
        for key, value in self._pairs(state_name):
            yield key if is_key else value

    def iterate_pairs(self, state_name: str) -> Iterator[tuple[Any, Any]]:
        yield from self._pairs(state_name)

    def exists(self, state_name: str) -> bool:
        cell = self._known_cell(state_name)
        if cell is not None:
            if any(value is not None for value in cell.values.values()):
                return True
            if cell.is_complete:
                return False
            self._client.write_variable(state_name)
        return super().exists(state_name)

    def get_value(self, state_name: str, user_key: Any) -> Any:
        try:
            value = self._value(state_name, self._key(state_name, user_key))
        except InexactError:
            self._write_and_forget(state_name)
            return super().get_value(state_name, user_key)
        return None if value is None else self._row(*value)

    def contains_key(self, state_name: str, user_key: Any) -> bool:
        try:
            return self._value(state_name, self._key(state_name, user_key)) is not None
        except InexactError:
            self._write_and_forget(state_name)
            return super().contains_key(state_name, user_key)

    def update_value(self, state_name: str, user_key: Any, value: Any) -> None:
        try:
            self._set(state_name, self._key(state_name, user_key), self._exact.of(value))
        except InexactError:
            self._write_and_forget(state_name)
            super().update_value(state_name, user_key, value)

    def remove_key(self, state_name: str, key: Any) -> None:
        try:
            self._set(state_name, self._key(state_name, key), None)
        except InexactError:
            self._write_and_forget(state_name)
            super().remove_key(state_name, key)

    def clear(self, state_name: str) -> None:
        if not self._is_cached(state_name):
            super().clear(state_name)
            return
        cell = self._client.current.cells[state_name] = MapCell()
        cell.is_complete = cell.is_new = True
        cell.order = []
        self._client.changed(state_name, self)

    def write(self, name: str, cell: MapCell) -> None:
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        def post(**call: Any) -> None:
            request = messages.StateVariableRequest(mapStateCall=messages.MapStateCall(stateName=name, **call))
            self._client.post(messages.StateRequest(stateVariableRequest=request))

        if cell.is_new:
            post(clear=messages.Clear())
        for user_key in cell.changed:
            key = self._client._serialize_to_bytes(self.user_key_schema, user_key)
            value = cell.values[user_key]
            if value is not None:
                stored = self._client._serialize_to_bytes(self.value_schema, value)
                post(updateValue=messages.UpdateValue(userKey=key, value=stored))
            elif not cell.is_new:
                post(removeKey=messages.RemoveKey(userKey=key))
        cell.changed = {}
        cell.is_new = False

    def _key(self, name: str, user_key: Any) -> Any:
        if not self._is_cached(name):
            raise InexactError
        return self._exact_key.of(user_key)

    def _value(self, name: str, user_key: Any) -> Any:
        cell = self._cell(name)
        value = cell.values.get(user_key, _UNKNOWN)
        if value is _UNKNOWN and cell.is_complete:
            value = None
        elif value is _UNKNOWN:
            stored = super().get_value(name, user_key)
            value = None if stored is None else tuple(stored)
            cell.set(user_key, value)
            self._limit(name, cell)
        return value

    def _set(self, name: str, user_key: Any, value: Any) -> None:
        cell = self._cell(name)
        if (cell.values.get(user_key) is None) != (value is None):
            cell.order = None
        cell.set(user_key, value)
        cell.changed[user_key] = None
        self._client.changed(name, self)
        self._limit(name, cell)

    def _pairs(self, name: str) -> list[tuple[Any, Any]]:
        cell = self._known_cell(name)
        if cell is not None and cell.is_complete and cell.order is not None:
            return [(key, cell.values[key]) for key in cell.order]
        self._write_and_forget(name)
        pairs = list(self._stored(name))
        if self._is_cached(name):
            cell = MapCell()
            for key, value in pairs:
                cell.set(key, value)
            cell.order = [key for key, _ in pairs]
            cell.is_complete = True
            if not self._is_too_large(cell):
                self._client.current.cells[name] = cell
        return pairs

    def _stored(self, name: str) -> Iterator[tuple[Any, Any]]:
        iterator = self._client.new_iterator()
        is_last = False
        while not is_last:
            try:
                key, value, is_last = self.get_key_value_pair(name, iterator)
            except StopIteration:
                return
            yield key, value

    def _cell(self, name: str) -> MapCell:
        cells = self._client.current.cells
        found: MapCell | None = cells.get(name)
        if found is None:
            found = cells[name] = MapCell()
        return found

    def _known_cell(self, name: str) -> MapCell | None:
        found: MapCell | None = self._client.current.cells.get(name)
        return found

    def _limit(self, name: str, cell: MapCell) -> None:
        if self._is_too_large(cell):
            self._write_and_forget(name)
