"""`transformWithState` in a worker in Real-Time Mode: the processor is called for each row, in the order of the rows.

PySpark's worker hands a processor all rows of a key at once, which needs a sorted batch. Here each row is a call of its
own, so each result can be returned with the index of its row in the batch. An empty batch is a tick: it fires the
expired timers.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasFuncMode as Mode
from pyspark.sql.types import Row, StructField, StructType
from pyspark.util import PythonEvalType

from tailrace_worker.cached_state import install_cached_state
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
        form = _Frames if eval_type in _OVER_PANDAS else _Rows
        self._data: _RowForm = form(data, return_type, runner_conf, keeps_keys=self._has_initial_state)
        self._initial: _RowForm | None = (
            form(initial[0], return_type, runner_conf, keeps_keys=True) if initial else None
        )
        #: The row that the processor is called for, or whose result is converted; None if there is none.
        self.row: int | None = None

    def run(self, _partition: int, batches: Iterable[Any]) -> Iterator[Any]:
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
        else:
            yield from self._results_or_initial_state(batch, self._initial)

    def _results_or_initial_state(self, batch: Any, initial_form: _RowForm) -> Iterator[tuple[int, Any]]:
        """Each row belongs either to the initial state, which comes first, or to the data."""
        import pyarrow as pa

        data, initial = (pa.RecordBatch.from_struct_array(column) for column in batch.columns)
        is_data = batch.column(0).is_valid().to_pylist()
        rows, states = self._data.inputs(data), initial_form.inputs(initial)
        for index, (of_data, (key, value), (state_key, state)) in enumerate(zip(is_data, rows, states, strict=True)):
            if of_data:
                self.row = index
                for result in self._call(Mode.PROCESS_DATA, key, (value,)):
                    yield index, result
            else:
                for _ in self._udf(self._client, Mode.PROCESS_DATA, state_key, iter(()), iter((state,))):
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


class _RowForm(ABC):
    """The form in which a processor takes rows and gives results."""

    def __init__(
        self, columns: tuple[list[int], list[int]], return_type: StructType, conf: Any, *, keeps_keys: bool
    ) -> None:
        self._keys, self._values = columns
        self._type = return_type
        self._conf = conf
        # With an initial state PySpark passes the key columns along with the data.
        self._keeps_keys = keeps_keys

    @abstractmethod
    def inputs(self, batch: Any) -> Iterator[tuple[Any, Any]]:
        """The key and the value of each row."""

    @abstractmethod
    def as_batches(self, results: list[tuple[int, Any]]) -> Iterator[Any]:
        """Converts results and the indexes of their rows to Arrow batches."""


class _Rows(_RowForm):
    """Takes and gives `Row`s."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type

        # The same type as in PySpark's worker.
        self._arrow: Any = to_arrow_type(self._type, timezone="UTC", prefers_large_types=False)
        self._fields = [self._arrow.field(index) for index in range(self._arrow.num_fields)]
        self._names = [field.name for field in self._fields]
        self._is_flat = not any(pa.types.is_nested(field.type) for field in self._fields)

    def inputs(self, batch: Any) -> Iterator[tuple[Any, Any]]:
        row = Row(*batch.schema.names)
        keys = self._keys
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield tuple(values[index] for index in keys), row(*values)

    def as_batches(self, results: list[tuple[int, Any]]) -> Iterator[Any]:
        import pyarrow as pa

        rows = [self._as_tuple(row) for _, row in results]
        columns = zip(*rows, strict=True) if self._names else ()
        arrays = [pa.array(values, type=field.type) for values, field in zip(columns, self._fields, strict=True)]
        yield _with_indexes(pa.StructArray.from_arrays(arrays, fields=self._fields), [index for index, _ in results])

    def _as_tuple(self, row: Any) -> tuple[Any, ...]:
        if self._is_flat and getattr(row, "__fields__", None) == self._names:
            return tuple(row)
        named = row.asDict(True)
        return tuple(named.get(name) for name in self._names)


class _Frames(_RowForm):
    """Takes and gives pandas frames; each row is a frame of its own."""

    def inputs(self, batch: Any) -> Iterator[tuple[Any, Any]]:
        import pandas as pd
        from pyspark.sql.conversion import ArrowBatchTransformer

        series = ArrowBatchTransformer.to_pandas(
            batch, timezone=self._conf.timezone, prefer_int_ext_dtype=self._conf.prefer_int_ext_dtype
        )
        indexes = range(len(series)) if self._keeps_keys else self._values
        for row in pd.concat(series, axis=1).itertuples(index=False):
            # The types are inferred from the values, as in PySpark's worker.
            frame = pd.DataFrame([[row[index] for index in indexes]], columns=[row._fields[index] for index in indexes])
            yield tuple(row[index] for index in self._keys), frame

    def as_batches(self, results: list[tuple[int, Any]]) -> Iterator[Any]:
        for group in self._with_equal_layout(results):
            yield self._as_batch([index for index, _ in group], [frame for _, frame in group])

    def _with_equal_layout(self, results: list[tuple[int, Any]]) -> Iterator[list[tuple[int, Any]]]:
        """Groups consecutive frames with the same columns and types: one conversion costs as much as a hundred rows."""
        group: list[tuple[int, Any]] = []
        layout = None
        for index, frame in results:
            self._verify(frame)
            layout_of_frame = (tuple(frame.columns), tuple(frame.dtypes))
            if group and layout != layout_of_frame:
                yield group
                group = []
            layout = layout_of_frame
            group.append((index, frame))
        if group:
            yield group

    def _verify(self, frame: Any) -> None:
        import pandas as pd
        from pyspark.errors import PySparkValueError

        if not isinstance(frame, pd.DataFrame):
            raise PySparkValueError(
                f"handleInputRows and handleExpiredTimer must yield pandas.DataFrame, not {type(frame).__name__}."
            )

    def _as_batch(self, indexes: list[int], frames: list[Any]) -> Any:
        import pandas as pd
        from pyspark.sql.conversion import PandasToArrowConversion

        converted = PandasToArrowConversion.convert(
            [frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)],
            StructType([StructField("_0", self._type)]),
            timezone=self._conf.timezone,
            safecheck=self._conf.safecheck,
            arrow_cast=True,
            assign_cols_by_name=self._conf.assign_cols_by_name,
            int_to_decimal_coercion_enabled=self._conf.int_to_decimal_coercion_enabled,
        )
        rows = [index for index, frame in zip(indexes, frames, strict=True) for _ in range(len(frame))]
        return _with_indexes(converted.column(0), rows)


def _with_indexes(results: Any, indexes: list[int]) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([results, pa.array(indexes, type=pa.int32())], names=["_0", "_1"])
