"""A worker's access to the state of its task in Real-Time Mode: cached, and written in batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from pyspark.sql.streaming import stateful_processor_api_client as state_api
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState
from pyspark.sql.types import StructType

from tailrace_worker.batched_value_state import MAX_KEYS_PER_MESSAGE, BatchedValueState, ValueCodec
from tailrace_worker.key_cache import KeyCache, KeyState, StateVariable
from tailrace_worker.pipelined_client import PipelinedClient

#: Keys with unwritten changes; the end of an epoch has to write them all.
MAX_UNWRITTEN = 8_000

#: Keys written after each batch while the worker keeps up.
WRITTEN_AFTER_BATCH = 32

_PLAIN_KEY_TYPES = frozenset({str, int, bool, type(None)})


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class EpochStateClient(PipelinedClient):
    """Caches the state of recently used keys and writes changes later, many keys at a time.

    This is safe because the task owns its partition of the state for the whole epoch. If the task fails, the unwritten
    changes are lost with the epoch, which then runs again.
    """

    def __init__(self, address: int | str, key_schema: StructType, clock: Callable[[], int] = now_ms) -> None:
        super().__init__(address, key_schema)
        self._clock = clock
        self.ending = False
        #: Variables with a time to live.
        self.expiring: set[str] = set()
        #: Variables that the processor has deleted and not defined again.
        self.deleted: set[str] = set()
        #: Value variables that a processor has read, which `read_ahead` reads for new keys.
        self.read_variables: dict[str, ValueCodec] = {}
        self._batched = BatchedValueState()
        self._cache = KeyCache()
        self._unwritten: dict[Any, KeyState] = {}
        self._watermark: int | None = None
        self._watermark_is_stale = False
        self._timers_are_allowed = False

    # Keys.

    def set_implicit_key(self, key: Any) -> None:
        self.current = self._cache.use(key, self._identity(key))
        if self.list_timer_iterator_cursors:
            self.list_timer_iterator_cursors.clear()
        # Batches are short, but any number of timers may fire in one.
        if self._cache.is_overdue:
            self._evict()

    def _evict(self) -> None:
        evicted = self._cache.evict()
        self._write_states(evicted)
        for state in evicted:
            # One of them may still be the current key.
            state.cells, state.bytes = {}, 0

    def _identity(self, key: Any) -> Any:
        """A hashable value that is equal for two keys if and only if Spark considers them equal."""
        for value in key:
            if type(value) not in _PLAIN_KEY_TYPES:
                return self._serialize_to_bytes(self.key_schema, key)
        return tuple(key)

    def read_ahead(self, keys: Iterable[Any]) -> None:
        """Reads the values of uncached keys in few messages, before the processor asks for each of them."""
        if not self.read_variables:
            return
        distinct = {self._identity(key): key for key in keys}
        uncached = [KeyState(key, identity) for identity, key in distinct.items() if identity not in self._cache]
        for start in range(0, len(uncached), MAX_KEYS_PER_MESSAGE):
            self._read_batch(uncached[start : start + MAX_KEYS_PER_MESSAGE])

    def _read_batch(self, states: list[KeyState]) -> None:
        self._server_key = None
        self._write(self._batched.read(self.read_variables, [self._encoded_key(state) for state in states]))
        values_by_key = self._batched.values_in(self._request(self._batched.fetch()))
        for state, values in zip(states, values_by_key, strict=True):
            for (name, codec), value in zip(self.read_variables.items(), values, strict=True):
                state.cells[name] = None if value is None else codec.decode(value)
            self._cache.add(state)

    def _encoded_key(self, state: KeyState) -> Any:
        if type(state.identity) is tuple:
            return state.identity
        return self.key_schema.toInternal(tuple(map(state_api._normalize_state_value, state.key)))

    # Deferred writes.

    def changed(self, name: str, variable: StateVariable) -> None:
        """Marks a variable of the current key as changed; it is written later."""
        current = self.current
        current.unwritten[name] = variable
        self._unwritten[current.identity] = current

    def batch_is_done(self, *, has_time: bool) -> None:
        """Writes some of the changes, without waiting for the answers.

        A worker that is behind writes late: until then a key may change many times and is written once.
        """
        count = WRITTEN_AFTER_BATCH if has_time else 0
        if len(self._unwritten) > MAX_UNWRITTEN:
            count = len(self._unwritten) - MAX_UNWRITTEN // 2
        self._write_states(list(islice(self._unwritten.values(), count)))
        self._evict()
        self.sockfile.flush()

    def write_variable(self, name: str) -> None:
        """Writes a variable of the current key now, if it has changed."""
        variable = self.current.unwritten.pop(name, None)
        if variable is not None:
            variable.write(name, self.current.cells[name])

    def _write_all(self) -> None:
        self._write_states(list(self._unwritten.values()))
        self.sockfile.flush()
        self._read_answers()

    def _write_states(self, states: list[KeyState]) -> None:
        for start in range(0, len(states), MAX_KEYS_PER_MESSAGE):
            self._write_batch(states[start : start + MAX_KEYS_PER_MESSAGE])

    def _write_batch(self, states: list[KeyState]) -> None:
        batches: dict[str, tuple[list[Any], list[Any]]] = {}
        before = self.current
        for state in states:
            self._unwritten.pop(state.identity, None)
            for name, variable in state.unwritten.items():
                cell = state.cells[name]
                if variable.codec is None:
                    self.current = state
                    variable.write(name, cell)
                else:
                    keys, values = batches.setdefault(name, ([], []))
                    keys.append(self._encoded_key(state))
                    values.append(None if cell is None else variable.codec.encode(cell))
            state.unwritten.clear()
        self.current = before
        for name, (keys, values) in batches.items():
            self._server_key = None
            self._post_bytes(self._batched.write(name, keys, values))

    # Time and timers.

    def watermark_may_have_moved(self) -> None:
        self._watermark_is_stale = True

    def get_timestamps(self, time_mode: str) -> tuple[int, int]:
        if time_mode.lower() == "none":
            return -1, -1
        if self._watermark is None or (self._watermark_is_stale and time_mode.lower() == "eventtime"):
            self._watermark = self._get_watermark_timestamp()
            self._watermark_is_stale = False
        return self._clock(), self._watermark

    def register_timer(self, expiry_time_stamp_ms: int) -> None:
        if not self._timers_are_allowed:
            # Waits for the answer, so a query without a time mode gets the error at this call.
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

    # The processor's phases and variables.

    def set_handle_state(self, state: StatefulProcessorHandleState) -> None:
        if state == StatefulProcessorHandleState.DATA_PROCESSED and not self.ending:
            return  # timers fire on each tick, and more rows follow
        if state in (StatefulProcessorHandleState.TIMER_PROCESSED, StatefulProcessorHandleState.CLOSED):
            self._write_all()
        super().set_handle_state(state)

    def get_value_state(self, state_name: str, schema: StructType | str, ttl_duration_ms: int | None) -> None:
        self._defined(state_name, ttl_duration_ms)
        super().get_value_state(state_name, schema, ttl_duration_ms)

    def get_list_state(self, state_name: str, schema: StructType | str, ttl_duration_ms: int | None) -> None:
        self._defined(state_name, ttl_duration_ms)
        super().get_list_state(state_name, schema, ttl_duration_ms)

    def get_map_state(
        self,
        state_name: str,
        user_key_schema: StructType | str,
        value_schema: StructType | str,
        ttl_duration_ms: int | None,
    ) -> None:
        self._defined(state_name, ttl_duration_ms)
        super().get_map_state(state_name, user_key_schema, value_schema, ttl_duration_ms)

    def delete_if_exists(self, state_name: str) -> None:
        super().delete_if_exists(state_name)
        self.deleted.add(state_name)

    def _defined(self, name: str, ttl_ms: int | None) -> None:
        self.deleted.discard(name)
        if ttl_ms is not None:
            self.expiring.add(name)
