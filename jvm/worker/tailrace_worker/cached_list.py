"""A cached list variable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.list_state_client import ListStateClient
from pyspark.sql.types import StructType

from tailrace_worker.cached_variable import CachedVariable
from tailrace_worker.exact_values import ExactValues, InexactError
from tailrace_worker.state_client import EpochStateClient
from tailrace_worker.value_size import bytes_of


class ListCell:
    """All values of a list, or only those that were appended and not written yet."""

    __slots__ = ("appended", "bytes", "is_new", "values")

    def __init__(self, values: list[Any] | None) -> None:
        self.values = values
        self.appended: list[Any] = []
        #: True if it replaces what is stored.
        self.is_new = False
        self.bytes = sum(map(bytes_of, values or ()))

    @property
    def size(self) -> int:
        return len(self.values or self.appended)

    def append(self, values: list[Any]) -> None:
        if self.values is not None:
            self.values.extend(values)
        if not self.is_new:
            self.appended.extend(values)
        self.bytes += sum(map(bytes_of, values))

    def is_written(self) -> None:
        self.is_new = False
        self.appended = []
        if self.values is None:
            self.bytes = 0


class CachedList(CachedVariable, ListStateClient):
    def __init__(self, client: EpochStateClient, schema: StructType | str) -> None:
        super().__init__(client, schema)
        self._client = client
        self._exact = ExactValues(self.schema)
        self._is_cacheable = self._exact.possible

    def iterate(self, state_name: str) -> Iterator[Any]:
        # A snapshot: later changes do not affect a running iteration.
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
        cell = self._client.current.cells.setdefault(state_name, ListCell(None))
        cell.append(exact)
        self._client.changed(state_name, self)
        if self._is_too_large(cell):
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
        if self._is_cached(state_name):
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
        cell.is_written()
        request = messages.StateVariableRequest(listStateCall=call)
        self._client.post(messages.StateRequest(stateVariableRequest=request))

    def _values(self, name: str) -> list[Any]:
        cell = self._cell(name)
        if cell is not None and cell.values is not None:
            return cell.values
        if cell is not None:
            self._write_and_forget(name)
        values = list(self._stored(name))
        if self._is_cached(name) and not self._is_too_large(cell := ListCell(values)):
            self._client.current.cells[name] = cell
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
        cell = self._client.current.cells[name] = ListCell(values)
        cell.is_new = True
        self._client.changed(name, self)
        if self._is_too_large(cell):
            self._write_and_forget(name)

    def _exact_list(self, name: str, values: Any) -> list[Any]:
        # PySpark rejects an empty list with its own error.
        if not self._is_cached(name) or type(values) is not list or not values:
            raise InexactError
        return [self._exact.of(value) for value in values]

    def _cell(self, name: str) -> ListCell | None:
        found: ListCell | None = self._client.current.cells.get(name)
        return found
