"""State variables whose values are remembered by the worker and written later; see `EpochClient`.

Variables with a time to live are not remembered: when a value expires is reckoned by the state store when it is
written, and whether it has expired when it is read.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.list_state_client import ListStateClient
from pyspark.sql.streaming.map_state_client import MapStateClient
from pyspark.sql.streaming.value_state_client import ValueStateClient
from pyspark.sql.types import Row, StructType

from tailrace_worker.batched_value_state import StoredValues
from tailrace_worker.exact_values import ExactValues, InexactError
from tailrace_worker.state_client import EpochClient

#: A list or a map with more entries is not remembered.
MOST_ENTRIES = 1_000

_UNKNOWN: Any = object()


def remember_state() -> None:
    """Let the processors of this process use these variables."""
    api: Any = importlib.import_module("pyspark.sql.streaming.stateful_processor")
    api.ValueStateClient = RememberedValue
    api.ListStateClient = RememberedList
    api.MapStateClient = RememberedMap
    api.ListStateIterator = RememberedList.iterate
    api.MapStateIterator = RememberedMap.iterate_keys_or_values
    api.MapStateKeyValuePairIterator = RememberedMap.iterate_pairs


class RememberedValue(ValueStateClient):
    """A cell is the value, or None if there is none."""

    def __init__(self, client: EpochClient, schema: StructType | str) -> None:
        super().__init__(client, schema)
        self._client = client
        self._exact = ExactValues(self.schema)
        self.stored: StoredValues | None = StoredValues(self.schema)

    def exists(self, state_name: str) -> bool:
        if self._is_remembered(state_name):
            return self.get(state_name) is not None
        return super().exists(state_name)

    def get(self, state_name: str) -> Any:
        if not self._is_remembered(state_name):
            return super().get(state_name)
        cells = self._client.at.cells
        value = cells.get(state_name, _UNKNOWN)
        if value is _UNKNOWN:
            value = cells[state_name] = super().get(state_name)
            self._client.read_before[state_name] = StoredValues(self.schema)
        return value

    def update(self, state_name: str, value: Any) -> None:
        try:
            exact = self._exact.of(value)
        except InexactError:
            self._forget(state_name)
            super().update(state_name, value)
            return
        self._set(state_name, exact)

    def clear(self, state_name: str) -> None:
        self._set(state_name, None)

    def write(self, name: str, cell: Any) -> None:
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        if cell is None:
            call = messages.ValueStateCall(stateName=name, clear=messages.Clear())
        else:
            value = self._client._serialize_to_bytes(self.schema, cell)
            call = messages.ValueStateCall(stateName=name, valueStateUpdate=messages.ValueStateUpdate(value=value))
        request = messages.StateVariableRequest(valueStateCall=call)
        self._client.post(messages.StateRequest(stateVariableRequest=request))

    def _set(self, name: str, value: Any) -> None:
        if self._is_remembered(name):
            self._client.at.cells[name] = value
            self._client.changed(name, self)
        else:
            self.write(name, value)

    def _is_remembered(self, name: str) -> bool:
        return self._exact.possible and name not in self._client.expiring

    def _forget(self, name: str) -> None:
        self._client.at.cells.pop(name, None)
        self._client.at.unwritten.pop(name, None)


class ListCell:
    """A list as far as it is known: all of its values, or only those that were appended and not written yet."""

    __slots__ = ("appended", "is_new", "values")

    def __init__(self, values: list[Any] | None) -> None:
        self.values = values
        self.appended: list[Any] = []
        #: Whether it replaces what is stored.
        self.is_new = False

    @property
    def size(self) -> int:
        return len(self.values or self.appended)


class RememberedList(ListStateClient):
    stored: StoredValues | None = None

    def __init__(self, client: EpochClient, schema: StructType | str) -> None:
        super().__init__(client, schema)
        self._client = client
        self._exact = ExactValues(self.schema)

    def iterate(self, state_name: str) -> Iterator[Any]:
        # As it is when the first value is asked for.
        yield from tuple(self._values(state_name))

    def exists(self, state_name: str) -> bool:
        cell = self._cell(state_name)
        if cell is not None and (cell.values is not None or cell.appended):
            return bool(cell.values or cell.appended)
        return super().exists(state_name)

    def append_value(self, state_name: str, value: Any) -> None:
        self.append_list(state_name, [value])

    def append_list(self, state_name: str, values: list[Any]) -> None:
        try:
            exact = self._exact_list(state_name, values)
        except InexactError:
            self._write_and_forget(state_name)
            super().append_list(state_name, values)
            return
        cell = self._client.at.cells.setdefault(state_name, ListCell(None))
        if cell.values is not None:
            cell.values.extend(exact)
        if not cell.is_new:
            cell.appended.extend(exact)
        self._client.changed(state_name, self)
        if cell.size > MOST_ENTRIES:
            self._write_and_forget(state_name)

    def put(self, state_name: str, values: list[Any]) -> None:
        try:
            exact = self._exact_list(state_name, values)
        except InexactError:
            self._forget(state_name)
            super().put(state_name, values)
            return
        self._replace(state_name, exact)

    def clear(self, state_name: str) -> None:
        if self._is_remembered(state_name):
            self._replace(state_name, [])
        else:
            super().clear(state_name)

    def write(self, name: str, cell: ListCell) -> None:
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        def as_bytes(values: list[Any]) -> list[bytes]:
            return [self._client._serialize_to_bytes(self.schema, value) for value in values]

        if cell.is_new and not cell.values:
            call = messages.ListStateCall(stateName=name, clear=messages.Clear())
        elif cell.is_new:
            put = messages.ListStatePut(value=as_bytes(cell.values or []), fetchWithArrow=False)
            call = messages.ListStateCall(stateName=name, listStatePut=put)
        elif cell.appended:
            append = messages.AppendList(value=as_bytes(cell.appended), fetchWithArrow=False)
            call = messages.ListStateCall(stateName=name, appendList=append)
        else:
            return
        cell.is_new = False
        cell.appended = []
        request = messages.StateVariableRequest(listStateCall=call)
        self._client.post(messages.StateRequest(stateVariableRequest=request))

    def _values(self, name: str) -> list[Any]:
        cell = self._cell(name)
        if cell is not None and cell.values is not None:
            return cell.values
        if cell is not None:
            self._write_and_forget(name)
        values = list(self._stored(name))
        if self._is_remembered(name) and len(values) <= MOST_ENTRIES:
            self._client.at.cells[name] = ListCell(values)
        return values

    def _stored(self, name: str) -> Iterator[Any]:
        iterator = self._client.new_iterator()
        is_last = False
        while not is_last:
            try:
                value, is_last = super().get(name, iterator)
            except StopIteration:
                return
            yield value

    def _replace(self, name: str, values: list[Any]) -> None:
        cell = self._client.at.cells[name] = ListCell(values)
        cell.is_new = True
        self._client.changed(name, self)
        if len(values) > MOST_ENTRIES:
            self._write_and_forget(name)

    def _exact_list(self, name: str, values: Any) -> list[Any]:
        # Spark refuses an empty list, in its own words.
        if not self._is_remembered(name) or type(values) is not list or not values:
            raise InexactError
        return [self._exact.of(value) for value in values]

    def _cell(self, name: str) -> ListCell | None:
        found: ListCell | None = self._client.at.cells.get(name)
        return found

    def _is_remembered(self, name: str) -> bool:
        return self._exact.possible and name not in self._client.expiring

    def _write_and_forget(self, name: str) -> None:
        self._client.write_variable(name)
        self._forget(name)

    def _forget(self, name: str) -> None:
        self._client.at.cells.pop(name, None)
        self._client.at.unwritten.pop(name, None)


class MapCell:
    """A map as far as it is known."""

    __slots__ = ("changed", "is_new", "is_whole", "order", "values")

    def __init__(self) -> None:
        #: By the user's key; None where it is known that there is no value.
        self.values: dict[Any, Any] = {}
        self.is_whole = False
        #: The keys in the store's order, while they stay the same.
        self.order: list[Any] | None = None
        self.changed: dict[Any, None] = {}
        #: Whether it replaces what is stored.
        self.is_new = False

    @property
    def size(self) -> int:
        return len(self.values)


class RememberedMap(MapStateClient):
    stored: StoredValues | None = None

    def __init__(self, client: EpochClient, user_key_schema: StructType | str, value_schema: StructType | str) -> None:
        super().__init__(client, user_key_schema, value_schema)
        self._client = client
        self._exact_key = ExactValues(self.user_key_schema, as_keys=True)
        self._exact = ExactValues(self.value_schema)
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
            if cell.is_whole:
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
        if not self._is_remembered(state_name):
            super().clear(state_name)
            return
        cell = self._client.at.cells[state_name] = MapCell()
        cell.is_whole = cell.is_new = True
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
        if not self._is_remembered(name):
            raise InexactError
        return self._exact_key.of(user_key)

    def _value(self, name: str, user_key: Any) -> Any:
        cell = self._cell(name)
        value = cell.values.get(user_key, _UNKNOWN)
        if value is _UNKNOWN and cell.is_whole:
            value = None
        elif value is _UNKNOWN:
            stored = super().get_value(name, user_key)
            value = cell.values[user_key] = None if stored is None else tuple(stored)
            self._limit(name, cell)
        return value

    def _set(self, name: str, user_key: Any, value: Any) -> None:
        cell = self._cell(name)
        if (cell.values.get(user_key) is None) != (value is None):
            cell.order = None
        cell.values[user_key] = value
        cell.changed[user_key] = None
        self._client.changed(name, self)
        self._limit(name, cell)

    def _pairs(self, name: str) -> list[tuple[Any, Any]]:
        cell = self._known_cell(name)
        if cell is not None and cell.is_whole and cell.order is not None:
            return [(key, cell.values[key]) for key in cell.order]
        self._write_and_forget(name)
        pairs = list(self._stored(name))
        if self._is_remembered(name) and len(pairs) <= MOST_ENTRIES:
            cell = self._client.at.cells[name] = MapCell()
            cell.values = dict(pairs)
            cell.order = [key for key, _ in pairs]
            cell.is_whole = True
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
        cells = self._client.at.cells
        found: MapCell | None = cells.get(name)
        if found is None:
            found = cells[name] = MapCell()
        return found

    def _known_cell(self, name: str) -> MapCell | None:
        found: MapCell | None = self._client.at.cells.get(name)
        return found

    def _limit(self, name: str, cell: MapCell) -> None:
        if cell.size > MOST_ENTRIES:
            self._write_and_forget(name)

    def _is_remembered(self, name: str) -> bool:
        return self._exact_key.possible and self._exact.possible and name not in self._client.expiring

    def _write_and_forget(self, name: str) -> None:
        self._client.write_variable(name)
        self._client.at.cells.pop(name, None)
        self._client.at.unwritten.pop(name, None)
