"""The values of many keys in one message.

To Spark's state server it is one more state variable, with one binary value; the plugin is behind it
(`BatchedValueState`). Its own protocol takes a message for each key and each value, and answers each of them by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.serializers import CPickleSerializer
from pyspark.sql.types import StructType

#: Known to the plugin.
NAME = "$tailrace.values"

#: Keys in one message.
MOST_TOGETHER = 256


class BatchedValueState:
    def __init__(self) -> None:
        self._pickle = CPickleSerializer()

    def write(self, name: str, keys: list[Any], values: list[Any]) -> bytes:
        """Sets a variable for each of the keys; None clears it."""
        return self._update((name, keys, values))

    def read(self, names: Iterable[str], keys: list[Any]) -> bytes:
        """Asks for variables of the keys; `fetch` is to follow."""
        return self._update((list(names), keys))

    def fetch(self) -> bytes:
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        return _request(messages.ValueStateCall(stateName=NAME, get=messages.Get()))

    def values_in(self, answer: bytes) -> list[tuple[Any, ...]]:
        """The variables of each key, in the order in which they were asked for."""
        [content] = self._pickle.loads(answer)
        values: list[tuple[Any, ...]] = self._pickle.loads(content)
        return values

    def _update(self, message: Any) -> bytes:
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        value = self._pickle.dumps((self._pickle.dumps(message),))
        update = messages.ValueStateUpdate(value=value)
        return _request(messages.ValueStateCall(stateName=NAME, valueStateUpdate=update))


class StoredValues:
    """How the values of one schema are on their way: as the JVM has dates and timestamps, for example."""

    def __init__(self, schema: StructType) -> None:
        self._schema = schema
        self._is_same = not schema._needSerializeAnyField

    def to_store(self, value: tuple[Any, ...]) -> Any:
        return value if self._is_same else self._schema.toInternal(value)

    def from_store(self, stored: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(stored) if self._is_same else tuple(self._schema.fromInternal(stored))


def _request(call: Any) -> bytes:
    import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

    variable = messages.StateVariableRequest(valueStateCall=call)
    request: bytes = messages.StateRequest(stateVariableRequest=variable).SerializeToString()
    return request
