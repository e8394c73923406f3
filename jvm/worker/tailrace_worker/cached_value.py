"""A cached value variable."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.value_state_client import ValueStateClient
from pyspark.sql.types import StructType

from tailrace_worker.batched_value_state import ValueCodec
from tailrace_worker.cached_variable import CachedVariable
from tailrace_worker.exact_values import ExactValues, InexactError
from tailrace_worker.state_client import EpochStateClient

_UNKNOWN: Any = object()


class CachedValue(CachedVariable, ValueStateClient):
    """Its cell is the value, or None if there is none."""

    def __init__(self, client: EpochStateClient, schema: StructType | str) -> None:
        super().__init__(client, schema)
        self._client = client
        self._exact = ExactValues(self.schema)
        self._is_cacheable = self._exact.possible
        self.codec = ValueCodec(self.schema)

    def exists(self, state_name: str) -> bool:
        if self._is_cached(state_name):
            return self.get(state_name) is not None
        return super().exists(state_name)

    def get(self, state_name: str) -> Any:
        if not self._is_cached(state_name):
            return super().get(state_name)
        cells = self._client.current.cells
        value = cells.get(state_name, _UNKNOWN)
        if value is _UNKNOWN:
            value = super().get(state_name)
            if not self._is_too_long(value):
                cells[state_name] = value
                self._client.read_variables[state_name] = ValueCodec(self.schema)
        return value

    def update(self, state_name: str, value: Any) -> None:
        try:
            exact = self._exact.of(value)
        except InexactError:
            self._forget(state_name)
            super().update(state_name, value)
            return
        if state_name in self._client.deleted:
            super().update(state_name, value)
        else:
            self._set(state_name, exact)

    def clear(self, state_name: str) -> None:
        if state_name in self._client.deleted:
            super().clear(state_name)
        else:
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
        if self._is_cached(name) and not self._is_too_long(value):
            self._client.current.cells[name] = value
            self._client.changed(name, self)
        else:
            self._forget(name)
            self.write(name, value)
