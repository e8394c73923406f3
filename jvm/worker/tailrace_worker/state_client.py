"""A worker's access to the state of its task in Real-Time Mode.

The other side is Spark's own state server, in its own protocol. What differs is when a request is sent: a worker serves
an epoch of minutes row by row, and a round trip for each call would be most of its work.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from pyspark.errors import PySparkRuntimeError
from pyspark.serializers import write_int
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient, StatefulProcessorHandleState
from pyspark.sql.types import StructType

#: Requests whose answers have not been read. More answers could fill the socket, and then both sides would wait.
MOST_UNANSWERED = 64

#: Grouping keys whose state is remembered.
MOST_KEYS = 10_000

#: Values that they may have together, in lists and maps above all.
MOST_VALUES = 100_000

#: Keys that are not written yet; an epoch's end has to write them all.
MOST_UNWRITTEN = 1_000

#: Keys that are written after each batch, while the worker has time.
WRITTEN_AFTER_BATCH = 32

_PLAIN_KEYS = frozenset({str, int, bool, type(None)})


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Writer(Protocol):
    """A state variable that can say what has changed."""

    def write(self, name: str, cell: Any) -> None: ...


class Reader(Protocol):
    """A state variable with one value."""

    def request(self) -> Any: ...

    def value_in(self, answer: bytes) -> Any: ...


class KeyState:
    """What is known of the state of one grouping key: a cell for each variable, and which are not written yet."""

    __slots__ = ("cells", "identity", "key", "size", "unwritten")

    def __init__(self, key: Any, identity: Any) -> None:
        self.key = key
        self.identity = identity
        self.cells: dict[str, Any] = {}
        self.unwritten: dict[str, Writer] = {}
        self.size = 0

    def grown(self) -> int:
        """By how many values since it was asked last."""
        before = self.size
        self.size = sum(getattr(cell, "size", 1) for cell in self.cells.values())
        return self.size - before


class EpochClient(StatefulProcessorApiClient):
    """Sends what need not be answered at once together, and remembers the state of the keys that it has seen.

    That is right because the task owns its partition of the state for the whole epoch. If it fails, what was not
    written is lost together with the epoch, which is then repeated.
    """

    def __init__(self, address: int | str, key_schema: StructType, clock: Callable[[], int] = now_ms) -> None:
        super().__init__(address, key_schema)
        self._clock = clock
        self.ending = False
        self.expiring: set[str] = set()
        #: Variables whose values were read at some time.
        self.read_before: dict[str, Reader] = {}
        self.at = KeyState(None, None)
        self._server_key: Any = None
        self._unanswered = 0
        self._known: OrderedDict[Any, KeyState] = OrderedDict()
        self._values = 0
        self._unwritten: dict[Any, KeyState] = {}
        self._watermark: int | None = None
        self._timers_are_allowed = False
        self._iterators = 0

    # The key at hand.

    def set_implicit_key(self, key: Any) -> None:
        self._values += self.at.grown()
        identity = self._identity(key)
        found = self._known.get(identity)
        if found is None:
            found = self._known[identity] = KeyState(key, identity)
        else:
            self._known.move_to_end(identity)
        self.at = found
        while len(self._known) > MOST_KEYS or (self._values > MOST_VALUES and len(self._known) > 1):
            self._forget(self._known.popitem(last=False)[1])
        if self.list_timer_iterator_cursors:
            self.list_timer_iterator_cursors.clear()

    def _forget(self, state: KeyState) -> None:
        self._write_one(state)
        self._values -= state.size
        # It can still be the server's key.
        state.cells, state.size = {}, 0

    def _identity(self, key: Any) -> Any:
        """Equal for two keys if they are the same to Spark."""
        for value in key:
            if type(value) not in _PLAIN_KEYS:
                return self._serialize_to_bytes(self.key_schema, key)
        return tuple(key)

    def remove_implicit_key(self) -> None:
        self.at = KeyState(None, None)
        self._server_key = None
        super().remove_implicit_key()

    def read_ahead(self, keys: Iterable[Any]) -> None:
        """Reads the values of new keys together, and not one by one when a processor asks for them."""
        if not self.read_before:
            return
        new = {self._identity(key): key for key in keys}
        unknown = [key for identity, key in new.items() if identity not in self._known]
        together = max(1, MOST_UNANSWERED // (1 + len(self.read_before)))
        for start in range(0, len(unknown), together):
            self._read_together(unknown[start : start + together])

    def _read_together(self, keys: list[Any]) -> None:
        states = []
        for key in keys:
            self.set_implicit_key(key)
            states.append(self.at)
        # Others may have been written to make room: from here on only the answers to these requests are to come.
        self.sockfile.flush()
        self._read_answers()
        for self.at in states:
            self._server_key = None
            self._tell_key()
            for variable in self.read_before.values():
                self._write(variable.request().SerializeToString())
        self.sockfile.flush()
        for state in states:
            self._read_answer()
            for name, variable in self.read_before.items():
                state.cells[name] = variable.value_in(self._read_answer())

    # What is written later.

    def changed(self, name: str, variable: Writer) -> None:
        """The variable of the key at hand is to be written at some time."""
        at = self.at
        at.unwritten[name] = variable
        self._unwritten[at.identity] = at

    def batch_is_done(self) -> None:
        """Writes some of what has changed, without waiting for it."""
        count = max(WRITTEN_AFTER_BATCH, len(self._unwritten) - MOST_UNWRITTEN)
        while self._unwritten and count > 0:
            self._write_one(next(iter(self._unwritten.values())))
            count -= 1
        self.sockfile.flush()

    def write_variable(self, name: str) -> None:
        """Of the key at hand, at once."""
        variable = self.at.unwritten.pop(name, None)
        if variable is not None:
            variable.write(name, self.at.cells[name])

    def _write_all(self) -> None:
        while self._unwritten:
            self._write_one(next(iter(self._unwritten.values())))
        self.sockfile.flush()
        self._read_answers()

    def _write_one(self, state: KeyState) -> None:
        self._unwritten.pop(state.identity, None)
        if state.unwritten:
            before, self.at = self.at, state
            for name, variable in state.unwritten.items():
                variable.write(name, state.cells[name])
            state.unwritten.clear()
            self.at = before

    # Requests.

    def post(self, message: Any) -> None:
        """Sends a request of which only a failure is of interest, sooner or later."""
        self._tell_key()
        self._write(message.SerializeToString())
        if self._unanswered >= MOST_UNANSWERED:
            self.sockfile.flush()
            self._read_answers()

    def _send_proto_message(self, message: bytes) -> None:
        # The caller reads the answer to this one next.
        self._tell_key()
        self._write(message)
        self.sockfile.flush()
        self._unanswered -= 1
        self._read_answers()

    def _tell_key(self) -> None:
        at = self.at
        if at is not self._server_key and at.identity is not None:
            import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

            key = messages.SetImplicitKey(key=self._serialize_to_bytes(self.key_schema, at.key))
            request = messages.ImplicitGroupingKeyRequest(setImplicitKey=key)
            self._write(messages.StateRequest(implicitGroupingKeyRequest=request).SerializeToString())
            self._server_key = at

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
        status, reason, value = self._receive_proto_message()
        if status != 0:
            raise PySparkRuntimeError(f"Error accessing state: {reason}")
        return value

    def new_iterator(self) -> str:
        """The id of an iterator over stored values, which is to be read to its end at once."""
        self._iterators += 1
        # The server forgets old ones when it is told a key, be it the same.
        self._server_key = None
        return str(self._iterators)

    # Time.

    def get_timestamps(self, time_mode: str) -> tuple[int, int]:
        if time_mode.lower() == "none":
            return -1, -1
        if self._watermark is None:
            self._watermark = self._get_watermark_timestamp()
        return self._clock(), self._watermark

    def register_timer(self, expiry_time_stamp_ms: int) -> None:
        if not self._timers_are_allowed:
            # A query without a time mode learns it where it calls.
            super().register_timer(expiry_time_stamp_ms)
            self._timers_are_allowed = True
            return
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        timer = messages.RegisterTimer(expiryTimestampMs=expiry_time_stamp_ms)
        self._post_timer(messages.TimerStateCallCommand(register=timer))

    def delete_timer(self, expiry_time_stamp_ms: int) -> None:
        if not self._timers_are_allowed:
            super().delete_timer(expiry_time_stamp_ms)
            self._timers_are_allowed = True
            return
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        timer = messages.DeleteTimer(expiryTimestampMs=expiry_time_stamp_ms)
        self._post_timer(messages.TimerStateCallCommand(delete=timer))

    def _post_timer(self, command: Any) -> None:
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        call = messages.StatefulProcessorCall(timerStateCall=command)
        self.post(messages.StateRequest(statefulProcessorCall=call))

    # The processor's life.

    def set_handle_state(self, state: StatefulProcessorHandleState) -> None:
        if state == StatefulProcessorHandleState.DATA_PROCESSED and not self.ending:
            return  # timers are looked after while more rows are to come
        if state in (StatefulProcessorHandleState.TIMER_PROCESSED, StatefulProcessorHandleState.CLOSED):
            self._write_all()
        super().set_handle_state(state)

    def get_value_state(self, state_name: str, schema: StructType | str, ttl_duration_ms: int | None) -> None:
        self._note_expiry(state_name, ttl_duration_ms)
        super().get_value_state(state_name, schema, ttl_duration_ms)

    def get_list_state(self, state_name: str, schema: StructType | str, ttl_duration_ms: int | None) -> None:
        self._note_expiry(state_name, ttl_duration_ms)
        super().get_list_state(state_name, schema, ttl_duration_ms)

    def get_map_state(
        self,
        state_name: str,
        user_key_schema: StructType | str,
        value_schema: StructType | str,
        ttl_duration_ms: int | None,
    ) -> None:
        self._note_expiry(state_name, ttl_duration_ms)
        super().get_map_state(state_name, user_key_schema, value_schema, ttl_duration_ms)

    def _note_expiry(self, name: str, ttl_ms: int | None) -> None:
        if ttl_ms is not None:
            self.expiring.add(name)
