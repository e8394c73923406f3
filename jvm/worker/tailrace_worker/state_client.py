"""A worker's access to the state of its task in Real-Time Mode.

The other side is Spark's own state server, in its own protocol. What differs is when a request is sent: a worker serves
an epoch of minutes row by row, and a round trip for each call would be most of its work.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Protocol

from pyspark.errors import PySparkRuntimeError
from pyspark.serializers import write_int
from pyspark.sql.streaming import stateful_processor_api_client as state_api
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient, StatefulProcessorHandleState
from pyspark.sql.types import StructType

from tailrace_worker.batched_value_state import MOST_TOGETHER, BatchedValueState, StoredValues

#: Requests whose answers have not been read. More answers could fill the socket, and then both sides would wait.
MOST_UNANSWERED = 64

#: Grouping keys whose state is remembered between batches; some ten megabytes.
MOST_KEYS = 20_000

#: Values that they may have together, in lists and maps above all.
MOST_VALUES = 100_000

#: Keys that are not written yet; an epoch's end has to write them all.
MOST_UNWRITTEN = 8_000

#: Keys that are written after a batch, while the worker has time.
WRITTEN_AFTER_BATCH = 32

_PLAIN_KEYS = frozenset({str, int, bool, type(None)})


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Writer(Protocol):
    """A state variable that can say what has changed."""

    #: None for one with more than one value.
    stored: StoredValues | None

    def write(self, name: str, cell: Any) -> None: ...


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
        self.read_before: dict[str, StoredValues] = {}
        self._together = BatchedValueState()
        self.at = KeyState(None, None)
        self._server_key: Any = None
        self._unanswered = 0
        self._known: OrderedDict[Any, KeyState] = OrderedDict()
        #: Those that the processor was called for since it was last reckoned what they have.
        self._used: dict[Any, KeyState] = {}
        self._values = 0
        self._unwritten: dict[Any, KeyState] = {}
        self._watermark: int | None = None
        self._time_has_passed = False
        self._timers_are_allowed = False
        self._iterators = 0

    # The key at hand.

    def set_implicit_key(self, key: Any) -> None:
        identity = self._identity(key)
        found = self._known.get(identity)
        if found is None:
            found = self._known[identity] = KeyState(key, identity)
        else:
            self._known.move_to_end(identity)
        self.at = self._used[identity] = found
        if self.list_timer_iterator_cursors:
            self.list_timer_iterator_cursors.clear()
        # Batches end soon, but any number of timers may fire together.
        if len(self._used) > MOST_KEYS:
            self._forget_some()

    def _forget_some(self) -> None:
        """Those that were not used for the longest time, if there are too many."""
        self._values += sum(state.grown() for state in self._used.values())
        self._used.clear()
        forgotten = []
        while len(self._known) > MOST_KEYS or (self._values > MOST_VALUES and len(self._known) > 1):
            state = self._known.popitem(last=False)[1]
            self._values -= state.size
            forgotten.append(state)
        self._write_states(forgotten)
        for state in forgotten:
            # It can still be the key at hand.
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
        unknown = [KeyState(key, identity) for identity, key in new.items() if identity not in self._known]
        for start in range(0, len(unknown), MOST_TOGETHER):
            self._read_together(unknown[start : start + MOST_TOGETHER])

    def _read_together(self, states: list[KeyState]) -> None:
        self._server_key = None
        self._write(self._together.read(self.read_before, [self._stored_key(state) for state in states]))
        self._write(self._together.fetch())
        self.sockfile.flush()
        while self._unanswered > 1:
            self._read_answer()
        for state, values in zip(states, self._together.values_in(self._read_answer()), strict=True):
            for (name, stored), value in zip(self.read_before.items(), values, strict=True):
                state.cells[name] = None if value is None else stored.from_store(value)
            self._known[state.identity] = self._used[state.identity] = state

    def _stored_key(self, state: KeyState) -> Any:
        if type(state.identity) is tuple:
            return state.identity
        return self.key_schema.toInternal(tuple(map(state_api._normalize_state_value, state.key)))

    # What is written later.

    def changed(self, name: str, variable: Writer) -> None:
        """The variable of the key at hand is to be written at some time."""
        at = self.at
        at.unwritten[name] = variable
        self._unwritten[at.identity] = at

    def batch_is_done(self, *, has_time: bool) -> None:
        """Writes some of what has changed, without waiting for it.

        A worker that is behind writes late: until then a key may change many times.
        """
        count = WRITTEN_AFTER_BATCH if has_time else 0
        if len(self._unwritten) > MOST_UNWRITTEN:
            count = len(self._unwritten) - MOST_UNWRITTEN // 2
        self._write_states(list(islice(self._unwritten.values(), count)))
        self._forget_some()
        self.sockfile.flush()

    def write_variable(self, name: str) -> None:
        """Of the key at hand, at once."""
        variable = self.at.unwritten.pop(name, None)
        if variable is not None:
            variable.write(name, self.at.cells[name])

    def _write_all(self) -> None:
        self._write_states(list(self._unwritten.values()))
        self.sockfile.flush()
        self._read_answers()

    def _write_states(self, states: list[KeyState]) -> None:
        for start in range(0, len(states), MOST_TOGETHER):
            self._write_together(states[start : start + MOST_TOGETHER])

    def _write_together(self, states: list[KeyState]) -> None:
        together: dict[str, tuple[list[Any], list[Any]]] = {}
        before = self.at
        for state in states:
            self._unwritten.pop(state.identity, None)
            for name, variable in state.unwritten.items():
                cell = state.cells[name]
                if variable.stored is None:
                    self.at = state
                    variable.write(name, cell)
                else:
                    keys, values = together.setdefault(name, ([], []))
                    keys.append(self._stored_key(state))
                    values.append(None if cell is None else variable.stored.to_store(cell))
            state.unwritten.clear()
        self.at = before
        for name, (keys, values) in together.items():
            self._server_key = None
            self._write_unanswered(self._together.write(name, keys, values))

    # Requests.

    def post(self, message: Any) -> None:
        """Sends a request of which only a failure is of interest, sooner or later."""
        self._tell_key()
        self._write_unanswered(message.SerializeToString())

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

    def _write_unanswered(self, message: bytes) -> None:
        self._write(message)
        if self._unanswered >= MOST_UNANSWERED:
            self.sockfile.flush()
            self._read_answers()

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

    def time_has_passed(self) -> None:
        """The watermark may be another one than before."""
        self._time_has_passed = True

    def get_timestamps(self, time_mode: str) -> tuple[int, int]:
        if time_mode.lower() == "none":
            return -1, -1
        if self._watermark is None or (self._time_has_passed and time_mode.lower() == "eventtime"):
            self._watermark = self._get_watermark_timestamp()
            self._time_has_passed = False
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
