"""Requests to Spark's state server that do not wait for their answers.

The server and its protocol are Spark's own. PySpark's client waits for the answer to each request; for a worker that
processes an epoch of minutes row by row, these round trips would be most of the work.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkRuntimeError
from pyspark.serializers import write_int
from pyspark.sql.streaming import stateful_processor_api_client as state_api
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient
from pyspark.sql.types import StructType

from tailrace_worker.key_cache import KeyState
from tailrace_worker.stored_as_null import NullCheck

#: Requests with an unread answer. With more of them, answers could fill the socket and both sides would block.
MAX_UNANSWERED = 64

#: The status of a failed request. The server ends after it, unless the request was for a variable it does not know.
FAILED = 1
UNKNOWN_VARIABLE = "is not initialized."


class PipelinedClient(StatefulProcessorApiClient):
    """Sends requests for the current key, and tells the server which key that is only when it changes."""

    def __init__(self, address: int | str, key_schema: StructType) -> None:
        super().__init__(address, key_schema)
        self.current = KeyState(None, None)
        #: The key that the server applies requests to, if it is known.
        self._server_key: KeyState | None = None
        self._unanswered = 0
        self._iterators = 0
        self._null_checks: dict[int, tuple[StructType, NullCheck]] = {}
        self._failure: str | None = None

    def raise_failure(self) -> None:
        """Raises the failure after which the server ended, if there was one: a processor may have caught it."""
        if self._failure is not None:
            raise PySparkRuntimeError(f"Error accessing state: {self._failure}")

    def remove_implicit_key(self) -> None:
        self.current = KeyState(None, None)
        self._server_key = None
        super().remove_implicit_key()

    def post(self, message: Any) -> None:
        """Sends a request without a result; a later request raises its failure."""
        self._send_key()
        self._post_bytes(message.SerializeToString())

    def new_iterator(self) -> str:
        """The id of a new iterator over stored values. The caller must read it to its end at once."""
        self._iterators += 1
        # The server drops old iterators whenever it is told a key, even the same one.
        self._server_key = None
        return str(self._iterators)

    def _send_proto_message(self, message: bytes) -> None:
        # PySpark's methods call this and then read the answer to their own request.
        self._send_key()
        self._write(message)
        self.sockfile.flush()
        self._unanswered -= 1
        self._read_answers()

    def _send_key(self) -> None:
        current = self.current
        if current is not self._server_key and current.identity is not None:
            import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

            key = messages.SetImplicitKey(key=self._serialize_to_bytes(self.key_schema, current.key))
            request = messages.ImplicitGroupingKeyRequest(setImplicitKey=key)
            self._write(messages.StateRequest(implicitGroupingKeyRequest=request).SerializeToString())
            self._server_key = current

    def _post_bytes(self, message: bytes) -> None:
        self._write(message)
        if self._unanswered >= MAX_UNANSWERED:
            self.sockfile.flush()
            self._read_answers()

    def _request(self, message: bytes) -> bytes:
        """Sends a request and waits for its result."""
        self._write(message)
        self.sockfile.flush()
        while self._unanswered > 1:
            self._read_answer()
        return self._read_answer()

    def _write(self, message: bytes) -> None:
        write_int(0, self.sockfile)
        write_int(len(message), self.sockfile)
        self.sockfile.write(message)
        self._unanswered += 1

    def _read_answers(self) -> None:
        while self._unanswered > 0:
            self._read_answer()

    def _read_answer(self) -> bytes:
        self._unanswered -= 1
        value: bytes
        status, reason, value = self._receive_proto_message()
        if status != 0:
            raise PySparkRuntimeError(f"Error accessing state: {reason}")
        return value

    def _serialize_to_bytes(self, schema: StructType, data: Any) -> bytes:
        if state_api.has_numpy is None:
            state_api._load_numpy()
        internal = schema.toInternal(tuple(map(state_api._normalize_state_value, data)))
        self._null_check(schema)(internal)
        content: bytes = self.pickleSer.dumps(internal)
        return content

    def _null_check(self, schema: StructType) -> NullCheck:
        found = self._null_checks.get(id(schema))
        if found is None:
            # The schema is kept as well, so that no other one can get its id.
            found = self._null_checks[id(schema)] = schema, NullCheck(schema)
        return found[1]

    # PySpark's methods read the answers to their own requests with these.

    def _receive_proto_message(self) -> Any:
        return self._noted(super()._receive_proto_message())

    def _receive_proto_message_with_list_get(self) -> Any:
        return self._noted(super()._receive_proto_message_with_list_get())

    def _receive_proto_message_with_map_keys_values(self) -> Any:
        return self._noted(super()._receive_proto_message_with_map_keys_values())

    def _receive_proto_message_with_map_pairs(self) -> Any:
        return self._noted(super()._receive_proto_message_with_map_pairs())

    def _receive_proto_message_with_timers(self) -> Any:
        return self._noted(super()._receive_proto_message_with_timers())

    def _noted(self, answer: tuple[Any, ...]) -> tuple[Any, ...]:
        status, reason = answer[:2]
        if status == FAILED and self._failure is None and not reason.endswith(UNKNOWN_VARIABLE):
            self._failure = reason
        return answer
