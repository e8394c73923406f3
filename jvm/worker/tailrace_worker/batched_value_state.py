"""Reads and writes the values of many keys in one message.

To Spark's state server this is one more state variable, whose only value is binary; the plugin's `BatchedValueState`
implements it. The server's own protocol needs a message for each key and each value, and answers each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.serializers import CPickleSerializer
from pyspark.sql.types import StructType

#: The plugin uses the same name.
NAME = "$tailrace.values"

MAX_KEYS_PER_MESSAGE = 256


class BatchedValueState:
    def __init__(self) -> None:
        self._pickle = CPickleSerializer()

    def write(self, name: str, keys: list[Any], values: list[Any]) -> bytes:
        """A request that sets a variable for each of the keys; None clears it."""
        return self._update((name, keys, values))

    def read(self, names: Iterable[str], keys: list[Any]) -> bytes:
        """A request that selects variables of the keys; the request of `fetch` must follow."""
        return self._update((list(names), keys))

    def fetch(self) -> bytes:
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        return _request(messages.ValueStateCall(stateName=NAME, get=messages.Get()))

    def values_in(self, answer: bytes) -> list[tuple[Any, ...]]:
        """The variables of each key, in the order of the request."""
        [content] = self._pickle.loads(answer)
        values: list[tuple[Any, ...]] = self._pickle.loads(content)
        return values

    def _update(self, message: Any) -> bytes:
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        value = self._pickle.dumps((self._pickle.dumps(message),))
        update = messages.ValueStateUpdate(value=value)
        return _request(messages.ValueStateCall(stateName=NAME, valueStateUpdate=update))


class ValueCodec:
    """Converts the values of one schema to and from their form in the JVM, where a date is a number, for example."""

    def __init__(self, schema: StructType) -> None:
        self._schema = schema
        self._is_identity = not schema._needSerializeAnyField

    def encode(self, value: tuple[Any, ...]) -> Any:
        return value if self._is_identity else self._schema.toInternal(value)

    def decode(self, stored: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(stored) if self._is_identity else tuple(self._schema.fromInternal(stored))


def _request(call: Any) -> bytes:
    import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

    variable = messages.StateVariableRequest(valueStateCall=call)
    request: bytes = messages.StateRequest(stateVariableRequest=variable).SerializeToString()
    return request
