"""How a worker reads batches and writes answers in Real-Time Mode.

PySpark's worker builds a function and a pair of serializers for each task. `patch_worker` makes it use the serializers
of this module instead.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from pyspark.serializers import SpecialLengths, write_int
from pyspark.util import PythonEvalType

from tailrace_worker import bad_rows
from tailrace_worker.bad_rows import FailedRow, OncePerRow, write_failed
from tailrace_worker.pickled_answers import Acknowledgements, PickledAnswers, RowByRow, SkippingPickledAnswers

if TYPE_CHECKING:
    from tailrace_worker.stateful import ProcessorTask

#: Reports that a batch was taken, before the first result has opened the Arrow stream. The plugin uses the same code.
BATCH_TAKEN = -100

#: Precedes the row of the batch that the following exception was raised for. The plugin uses the same code.
AT_ROW = -101

#: Functions over an iterator of batches may drop or add rows, so their results do not tell which batches they took.
OVER_ITERATORS = frozenset(
    {
        PythonEvalType.SQL_SCALAR_PANDAS_ITER_UDF,
        PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF,
        PythonEvalType.SQL_MAP_PANDAS_ITER_UDF,
        PythonEvalType.SQL_MAP_ARROW_ITER_UDF,
    }
)

#: The four kinds of `transformWithState`.
WITH_STATE = frozenset(
    {
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_UDF,
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_INIT_STATE_UDF,
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_UDF,
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_INIT_STATE_UDF,
    }
)

_worker: Any = importlib.import_module("pyspark.worker")
_util: Any = importlib.import_module("pyspark.util")
_original_invoke = _worker.invoke_udf
_original_read_udfs = _worker.read_udfs
_original_read_single_udf = _worker.read_single_udf
_original_read_command = _worker.read_command
_original_report = _worker.handle_worker_exception
_original_simplify = _util.try_simplify_traceback
_internal_folders = (str(Path(_util.__file__).parent), str(Path(__file__).parent))

_task_output: IO[bytes]
_rows_of_task: RowByRow | ProcessorTask | None


class ArrowAnswers:
    """Reads Arrow batches and writes each result at once.

    With `reports_taken`, it also reports when the function asks for the next batch: with a code before the first
    result, with an empty batch after it. Empty results of the function itself are dropped, because they would look the
    same.
    """

    def __init__(self, *, reports_taken: bool) -> None:
        self._reports_taken = reports_taken
        self._out = _task_output
        # A function may read its input in another thread.
        self._writing = threading.Lock()
        self._writer: Any = None
        self._empty: Any = None
        self._batch_is_out = False

    def load_stream(self, stream: IO[bytes]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in pa.ipc.open_stream(stream):
            self._batch_is_out = True
            yield batch
            self._taken()

    def dump_stream(self, results: Iterable[Any], stream: IO[bytes]) -> None:
        import pyarrow as pa

        try:
            for result in results:
                if isinstance(result, FailedRow):
                    self._failed(result, stream)
                    continue
                if result.num_rows == 0:
                    continue
                with self._writing:
                    if self._writer is None:
                        write_int(SpecialLengths.START_ARROW_STREAM, stream)
                        self._writer = pa.RecordBatchStreamWriter(stream, result.schema)
                        self._empty = result.slice(0, 0)
                    self._writer.write_batch(result)
                    stream.flush()
        finally:
            with self._writing:
                self._close_stream()
        if self._batch_is_out:
            # The function returned before its input ended.
            self._taken()

    def _failed(self, row: FailedRow, stream: IO[bytes]) -> None:
        with self._writing:
            # There is no place for it within an Arrow stream. The next result opens another one.
            self._close_stream()
            write_failed(row, stream)
            stream.flush()

    def _close_stream(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _taken(self) -> None:
        self._batch_is_out = False
        if self._reports_taken:
            with self._writing:
                if self._writer is None:
                    write_int(BATCH_TAKEN, self._out)
                else:
                    self._writer.write_batch(self._empty)
                self._out.flush()


def patch_worker() -> None:
    """Make the tasks of this process answer each batch at once."""
    _worker.invoke_udf = _invoke_udf
    _worker.read_udfs = _read_udfs
    _worker.read_command = _read_command
    _worker.handle_worker_exception = _report
    _util.try_simplify_traceback = _simplify_traceback


def _invoke_udf(message_receiver: Any, outfile: IO[bytes]) -> None:
    global _task_output, _rows_of_task
    _task_output = outfile
    _rows_of_task = None
    _original_invoke(message_receiver, outfile)


def _read_udfs(pickle: Any, functions: Any, eval_type: int, *conf: Any) -> tuple[Callable[..., Any], Any, Any, Any]:
    global _rows_of_task
    if eval_type in WITH_STATE:
        from tailrace_worker.stateful import ProcessorTask

        task = _rows_of_task = ProcessorTask(_worker, pickle, functions[0], eval_type, *conf)
        answers_with_state = ArrowAnswers(reports_taken=True)
        return task.run, None, answers_with_state, answers_with_state
    if conf[0].get(bad_rows.SETTING) == "true":
        return _read_skipping_udfs(pickle, functions, eval_type, *conf)
    function, profiler, _, _ = _original_read_udfs(pickle, functions, eval_type, *conf)
    if eval_type == PythonEvalType.SQL_BATCHED_UDF:
        answers = _rows_of_task = PickledAnswers()
        return function, profiler, answers, answers
    batches = ArrowAnswers(reports_taken=eval_type in OVER_ITERATORS)
    return function, profiler, batches, batches


def _read_skipping_udfs(pickle: Any, functions: Any, eval_type: int, *conf: Any) -> tuple[Any, Any, Any, Any]:
    global _rows_of_task
    once = OncePerRow()

    def read_single_udf(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        read = _original_read_single_udf(*args, **kwargs)
        if eval_type == PythonEvalType.SQL_BATCHED_UDF:
            arguments, function = read
            return arguments, once.wrap(function)
        return once.wrap(read[0]), *read[1:]

    if bad_rows.wraps_single_rows(eval_type, conf[0]):
        _worker.read_single_udf = read_single_udf
    try:
        function, profiler, _, _ = _original_read_udfs(pickle, functions, eval_type, *conf)
    finally:
        _worker.read_single_udf = _original_read_single_udf
    if eval_type == PythonEvalType.SQL_BATCHED_UDF:
        answers = _rows_of_task = SkippingPickledAnswers(once)
        return function, profiler, answers, answers
    over_iterators = eval_type in OVER_ITERATORS
    skipping = bad_rows.skipping_iterators(function) if over_iterators else bad_rows.skipping_batches(function, once)
    batches = ArrowAnswers(reports_taken=over_iterators)
    return skipping, profiler, batches, batches


def _read_command(pickle: Any, command: Any) -> Any:
    loaded = _original_read_command(pickle, command)
    if not isinstance(loaded, tuple) or len(loaded) != 4:
        return loaded  # the function and type of a UDF, which read_udfs reads with this function as well
    global _rows_of_task
    function, profiler, _, _ = loaded
    acknowledgements = _rows_of_task = Acknowledgements(_task_output)
    return function, profiler, acknowledgements, acknowledgements


def _report(failure: BaseException, outfile: IO[bytes], *options: Any) -> None:
    if _rows_of_task is not None and _rows_of_task.row is not None:
        write_int(AT_ROW, outfile)
        write_int(_rows_of_task.row, outfile)
    _original_report(failure, outfile, *options)


def _simplify_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """Removes the leading frames of PySpark and of this package; PySpark's own function would stop at the latter."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(_internal_folders):
        traceback = traceback.tb_next
    simplified: TracebackType | None = _original_simplify(traceback)
    return simplified
