"""`transformWithState` in a worker in Real-Time Mode: the processor is called for each row, in the order of the rows.

PySpark's worker hands a processor all rows of a key at once, which needs a sorted batch. Here each row is a call of its
own, so each result can be returned with the index of its row in the batch. An empty batch is a tick: it fires the
expired timers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasFuncMode as Mode
from pyspark.util import PythonEvalType

from tailrace_worker.cached_state import install_cached_state
from tailrace_worker.row_forms import Frames, RowForm, Rows
from tailrace_worker.state_client import EpochStateClient, now_ms

#: Results in one message; the results of one row need not fit into memory at once.
MAX_RESULTS = 10_000

#: A worker that waited this long for a batch is not behind.
LONG_WAIT_S = 0.0005

#: The index of a result that comes from a timer and not from a row.
NO_ROW = -1

_OVER_PANDAS = frozenset(
    {
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_UDF,
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_INIT_STATE_UDF,
    }
)
_WITH_INITIAL_STATE = frozenset(
    {
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_INIT_STATE_UDF,
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_INIT_STATE_UDF,
    }
)


class ProcessorTask:
    """Runs a processor for one task."""

    def __init__(
        self, worker: Any, pickle: Any, function: Any, eval_type: int, runner_conf: Any, eval_conf: Any
    ) -> None:
        install_cached_state()
        self._udf, offsets, return_type = worker.read_single_udf(pickle, function, eval_type, runner_conf, 0)
        self._has_initial_state = eval_type in _WITH_INITIAL_STATE
        self._client = EpochStateClient(
            eval_conf.state_server_socket_port, eval_conf.grouping_key_schema, _clock(runner_conf)
        )
        data, *initial = _grouped(offsets)
        form = Frames if eval_type in _OVER_PANDAS else Rows
        self._data: RowForm = form(data, return_type, runner_conf, keeps_keys=self._has_initial_state)
        self._initial: RowForm | None = form(initial[0], return_type, runner_conf, keeps_keys=True) if initial else None
        #: The row that the processor is called for, or whose result is converted; None if there is none.
        self.row: int | None = None

    def run(self, _partition: int, batches: Iterable[Any]) -> Iterator[Any]:
        self._initialize()
        waiting_since = time.perf_counter()
        for batch in batches:
            has_waited = time.perf_counter() - waiting_since > LONG_WAIT_S
            yield from self._as_batches(self._results(batch))
            self.row = None
            self._client.batch_is_done(has_time=has_waited)
            waiting_since = time.perf_counter()
        self._client.ending = True
        self._client.watermark_may_have_moved()
        yield from self._as_batches((NO_ROW, result) for result in self._call(Mode.PROCESS_TIMER, None, ()))
        for _ in self._call(Mode.COMPLETE, None, ()):
            pass

    def _initialize(self) -> None:
        """Calls the processor's `init`, which PySpark leaves to the first row.

        An epoch that was started ahead has time for it before its first row. The state is not needed for it.
        """
        # PySpark calls it before anything else, and looks for timers only when someone reads the result.
        self._call(Mode.PROCESS_TIMER, None, ())

    def _as_batches(self, results: Iterator[tuple[int, Any]]) -> Iterator[Any]:
        """Converts results and the indexes of their rows to Arrow batches."""
        while some := list(islice(results, MAX_RESULTS)):
            try:
                converted = list(self._data.as_batches(some))
            except Exception:
                # Convert them one by one, to find out which row has the result that cannot be converted.
                converted = [batch for one in some for batch in self._converted(*one)]
            yield from converted

    def _converted(self, index: int, result: Any) -> list[Any]:
        self.row = None if index == NO_ROW else index
        return list(self._data.as_batches([(index, result)]))

    def _results(self, batch: Any) -> Iterator[tuple[int, Any]]:
        if batch.num_rows == 0:
            self._client.watermark_may_have_moved()
            for result in self._call(Mode.PROCESS_TIMER, None, ()):
                yield NO_ROW, result
        elif self._initial is None:
            rows = list(self._data.inputs(batch))
            self._client.read_ahead(key for key, _ in rows)
            for self.row, (key, value) in enumerate(rows):
                for result in self._call(Mode.PROCESS_DATA, key, (value,)):
                    yield self.row, result
                self._client.raise_failure()
        else:
            yield from self._results_or_initial_state(batch, self._initial)

    def _results_or_initial_state(self, batch: Any, initial_form: RowForm) -> Iterator[tuple[int, Any]]:
        """Each row belongs either to the initial state, which comes first, or to the data."""
        data, initial = batch.columns
        rows, states = self._data.inputs(_present(data)), initial_form.inputs(_present(initial))
        for index, of_data in enumerate(data.is_valid().to_pylist()):
            if of_data:
                self.row = index
                key, value = next(rows)
                for result in self._call(Mode.PROCESS_DATA, key, (value,)):
                    yield index, result
                self._client.raise_failure()
            else:
                self.row = None  # a row of the initial state is no record of a source
                key, state = next(states)
                for _ in self._udf(self._client, Mode.PROCESS_DATA, key, iter(()), iter((state,))):
                    pass

    def _call(self, mode: Mode, key: Any, values: tuple[Any, ...]) -> Iterable[Any]:
        none = (iter(()),) if self._has_initial_state else ()
        results: Iterable[Any] = self._udf(self._client, mode, key, iter(values), *none)
        return results


def _clock(conf: Any) -> Callable[[], int]:
    """The time in milliseconds; tests with `tailrace.testing` set their own."""
    file = conf.get("spark.tailrace.testing.clock", "")
    return (lambda: int(Path(file).read_text())) if file else now_ms


def _grouped(offsets: list[int]) -> Iterator[tuple[list[int], list[int]]]:
    """The indexes of the key columns and of the data columns, for each side of the input."""
    while offsets:
        length, keys = offsets[0], offsets[1]
        indexes = offsets[2 : length + 1]
        yield indexes[:keys], indexes[keys:]
        offsets = offsets[length + 1 :]


def _present(column: Any) -> Any:
    """The rows of one side of the input. Nulls in place of the other side's rows would change how pandas converts."""
    import pyarrow as pa

    return pa.RecordBatch.from_struct_array(column.drop_null())
