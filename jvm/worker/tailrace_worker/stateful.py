"""`transformWithState` in a worker in Real-Time Mode: the processor is called for each row, in the order of the rows.

PySpark's worker hands a processor all rows of a key at once, which needs a sorted batch. Here a row is a call, so that
its results are known to be its own; each result goes back with the index of its row in the batch. An empty batch asks
to look after the timers.
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

from tailrace_worker.cached_state import remember_state
from tailrace_worker.state_client import EpochClient, now_ms

#: Results in one message: a row that is made into very many does not have to fit into memory at once.
MOST_RESULTS = 10_000

#: A worker that waited so long for a batch is not behind.
LONG_WAIT_S = 0.0005

#: Not made of a row, but when a timer fired.
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


class RowsWithState:
    """One task of a processor."""

    def __init__(
        self, worker: Any, pickle: Any, function: Any, eval_type: int, runner_conf: Any, eval_conf: Any
    ) -> None:
        remember_state()
        self._udf, offsets, return_type = worker.read_single_udf(pickle, function, eval_type, runner_conf, 0)
        self._has_initial_state = eval_type in _WITH_INITIAL_STATE
        self._client = EpochClient(
            eval_conf.state_server_socket_port, eval_conf.grouping_key_schema, _clock(runner_conf)
        )
        data, *initial = _grouped(offsets)
        kind = _Frames if eval_type in _OVER_PANDAS else _Rows
        self._data: _Kind = kind(data, return_type, runner_conf, whole=self._has_initial_state)
        self._initial: _Kind | None = kind(initial[0], return_type, runner_conf, whole=True) if initial else None
        #: The row that the processor is called for, or whose result is converted.
        self.row: int | None = None

    def run(self, _partition: int, batches: Iterable[Any]) -> Iterator[Any]:
        asked = time.perf_counter()
        for batch in batches:
            has_waited = time.perf_counter() - asked > LONG_WAIT_S
            yield from self._answers(self._results(batch))
            self.row = None
            self._client.batch_is_done(has_time=has_waited)
            asked = time.perf_counter()
        self._client.ending = True
        self._client.time_has_passed()
        yield from self._answers((NO_ROW, result) for result in self._call(Mode.PROCESS_TIMER, None, ()))
        for _ in self._call(Mode.COMPLETE, None, ()):
            pass

    def _answers(self, results: Iterator[tuple[int, Any]]) -> Iterator[Any]:
        """The results as Arrow batches, each with the index of its row."""
        while some := list(islice(results, MOST_RESULTS)):
            try:
                converted = list(self._data.as_batches(some))
            except Exception:
                # One by one, so that it is known which row has a result that cannot be converted.
                converted = [piece for one in some for piece in self._converted(*one)]
            yield from converted

    def _converted(self, index: int, result: Any) -> list[Any]:
        self.row = None if index == NO_ROW else index
        return list(self._data.as_batches([(index, result)]))

    def _results(self, batch: Any) -> Iterator[tuple[int, Any]]:
        if batch.num_rows == 0:
            self._client.time_has_passed()
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

    def _results_or_initial_state(self, batch: Any, kind: _Kind) -> Iterator[tuple[int, Any]]:
        """Each row is one of the initial state or one of the data; all of the initial state comes first."""
        import pyarrow as pa

        data, initial = (pa.RecordBatch.from_struct_array(column) for column in batch.columns)
        is_data = batch.column(0).is_valid().to_pylist()
        rows, states = self._data.inputs(data), kind.inputs(initial)
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
    """A user's test (tailrace.testing) has a clock of its own."""
    file = conf.get("spark.tailrace.testing.clock", "")
    return (lambda: int(Path(file).read_text())) if file else now_ms


def _grouped(offsets: list[int]) -> Iterator[tuple[list[int], list[int]]]:
    """For each side of the input, which columns are its keys and which its data."""
    while offsets:
        length, keys = offsets[0], offsets[1]
        places = offsets[2 : length + 1]
        yield places[:keys], places[keys:]
        offsets = offsets[length + 1 :]


class _Kind(ABC):
    """How a processor wants its rows, and how its results become Arrow."""

    def __init__(
        self, columns: tuple[list[int], list[int]], return_type: StructType, conf: Any, *, whole: bool
    ) -> None:
        self._keys, self._values = columns
        self._type = return_type
        self._conf = conf
        # With an initial state PySpark leaves the keys among the columns.
        self._whole = whole

    @abstractmethod
    def inputs(self, batch: Any) -> Iterator[tuple[Any, Any]]:
        """The key and the value of each row."""

    @abstractmethod
    def as_batches(self, results: list[tuple[int, Any]]) -> Iterator[Any]:
        """Results and the indexes of their rows as Arrow batches."""


class _Rows(_Kind):
    """`Row`s in and out."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type

        # As PySpark's worker has it.
        self._arrow: Any = to_arrow_type(self._type, timezone="UTC", prefers_large_types=False)
        self._fields = [self._arrow.field(index) for index in range(self._arrow.num_fields)]
        self._names = [field.name for field in self._fields]
        self._is_flat = not any(pa.types.is_nested(field.type) for field in self._fields)

    def inputs(self, batch: Any) -> Iterator[tuple[Any, Any]]:
        row = Row(*batch.schema.names)
        keys = self._keys
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield tuple(values[place] for place in keys), row(*values)

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


class _Frames(_Kind):
    """pandas frames in and out; a row is a frame of its own."""

    def inputs(self, batch: Any) -> Iterator[tuple[Any, Any]]:
        import pandas as pd
        from pyspark.sql.conversion import ArrowBatchTransformer

        series = ArrowBatchTransformer.to_pandas(
            batch, timezone=self._conf.timezone, prefer_int_ext_dtype=self._conf.prefer_int_ext_dtype
        )
        places = range(len(series)) if self._whole else self._values
        for row in pd.concat(series, axis=1).itertuples(index=False):
            # Its types are inferred from the values, as PySpark's worker does it with the rows of a key.
            frame = pd.DataFrame([[row[place] for place in places]], columns=[row._fields[place] for place in places])
            yield tuple(row[place] for place in self._keys), frame

    def as_batches(self, results: list[tuple[int, Any]]) -> Iterator[Any]:
        for alike in self._alike(results):
            yield self._as_batch([index for index, _ in alike], [frame for _, frame in alike])

    def _alike(self, results: list[tuple[int, Any]]) -> Iterator[list[tuple[int, Any]]]:
        """Consecutive frames of the same columns and types: a conversion costs as much as a hundred rows in it."""
        alike: list[tuple[int, Any]] = []
        kind = None
        for index, frame in results:
            self._verify(frame)
            kind_of_this = (tuple(frame.columns), tuple(frame.dtypes))
            if alike and kind != kind_of_this:
                yield alike
                alike = []
            kind = kind_of_this
            alike.append((index, frame))
        if alike:
            yield alike

    def _verify(self, frame: Any) -> None:
        import pandas as pd
        from pyspark.errors import PySparkValueError

        if not isinstance(frame, pd.DataFrame):
            raise PySparkValueError(
                f"handleInputRows and handleExpiredTimer must yield pandas.DataFrame, and not {type(frame).__name__}."
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
