"""How a worker reads its batches and writes its answers in Real-Time Mode.

PySpark's worker builds a function and a pair of serializers for each task. `answer_at_once` lets it build the
function and puts these serializers in the place of its own.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from pyspark.serializers import CPickleSerializer, SpecialLengths, write_int
from pyspark.util import PythonEvalType

if TYPE_CHECKING:
    from tailrace_worker.stateful import RowsWithState

#: "One more batch is taken in", before the first result has opened the Arrow stream. Known to the plugin.
TAKEN = -100

#: "The exception that follows was thrown for this row of the batch". Known to the plugin.
AT_ROW = -101

#: Functions over an iterator of batches may drop or add rows, so their results alone do not tell what they took in.
OVER_ITERATORS = frozenset(
    {
        PythonEvalType.SQL_SCALAR_PANDAS_ITER_UDF,
        PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF,
        PythonEvalType.SQL_MAP_PANDAS_ITER_UDF,
        PythonEvalType.SQL_MAP_ARROW_ITER_UDF,
    }
)

#: `transformWithState` in its four kinds.
WITH_STATE = frozenset(
    {
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_UDF,
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_INIT_STATE_UDF,
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_UDF,
        PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_INIT_STATE_UDF,
    }
)

_worker: Any = importlib.import_module("pyspark.worker")
_original_invoke = _worker.invoke_udf
_original_read_udfs = _worker.read_udfs
_original_read_command = _worker.read_command
_original_report = _worker.handle_worker_exception

_task_output: IO[bytes]
_rows_of_task: RowByRow | RowsWithState | None


class ArrowAnswers:
    """Arrow batches in, and each result out as soon as it is there.

    With `say_taken`, the plugin is also told when the function comes back for more: by a mark before the first
    result, by an empty batch after it. Empty results of the function itself say nothing and are left out.
    """

    def __init__(self, *, say_taken: bool) -> None:
        self._say_taken = say_taken
        self._out = _task_output
        # A function may read ahead in a thread of its own.
        self._writing = threading.Lock()
        self._writer: Any = None
        self._nothing: Any = None
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
                if result.num_rows == 0:
                    continue
                with self._writing:
                    if self._writer is None:
                        write_int(SpecialLengths.START_ARROW_STREAM, stream)
                        self._writer = pa.RecordBatchStreamWriter(stream, result.schema)
                        self._nothing = result.slice(0, 0)
                    self._writer.write_batch(result)
                    stream.flush()
        finally:
            with self._writing:
                if self._writer is not None:
                    self._writer.close()
                    self._writer = None
        if self._batch_is_out:
            # The function returned before its input ended.
            self._taken()

    def _taken(self) -> None:
        self._batch_is_out = False
        if self._say_taken:
            with self._writing:
                if self._writer is None:
                    write_int(TAKEN, self._out)
                else:
                    self._writer.write_batch(self._nothing)
                self._out.flush()


class RowByRow:
    """Pickled lists of rows in, handed to the function one by one, so that it is known at which one it failed."""

    def __init__(self) -> None:
        self._pickle = CPickleSerializer()
        self._out = _task_output
        self.row: int | None = None

    def load_stream(self, stream: IO[bytes]) -> Iterator[Any]:
        for rows in self._pickle.load_stream(stream):
            self.begin(len(rows))
            for self.row, value in enumerate(rows):
                yield value
            self.row = None
            self.end()

    def begin(self, size: int) -> None:
        """A batch of so many rows has come."""

    def end(self) -> None:
        """The function has asked for the row after the batch's last."""


class PickledAnswers(RowByRow):
    """A list of as many results out for each list of rows."""

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def begin(self, size: int) -> None:
        self._size = size

    def dump_stream(self, results: Iterable[Any], stream: IO[bytes]) -> None:
        answer: list[Any] = []
        for result in results:
            answer.append(result)
            if len(answer) == self._size:
                self.row = None  # what cannot be pickled may be the result of any row
                self._pickle.dump_stream([answer], stream)
                stream.flush()
                answer = []


class Receipts(RowByRow):
    """An empty frame out when the function has processed a list of rows; it has no results."""

    def end(self) -> None:
        write_int(0, self._out)
        self._out.flush()

    def dump_stream(self, results: Iterable[Any], stream: IO[bytes]) -> None:
        for _ in results:
            pass


def answer_at_once() -> None:
    """Make the tasks of this process answer at once."""
    _worker.invoke_udf = _invoke_udf
    _worker.read_udfs = _read_udfs
    _worker.read_command = _read_command
    _worker.handle_worker_exception = _report


def _invoke_udf(message_receiver: Any, outfile: IO[bytes]) -> None:
    global _task_output, _rows_of_task
    _task_output = outfile
    _rows_of_task = None
    _original_invoke(message_receiver, outfile)


def _read_udfs(pickle: Any, functions: Any, eval_type: int, *conf: Any) -> tuple[Callable[..., Any], Any, Any, Any]:
    global _rows_of_task
    if eval_type in WITH_STATE:
        from tailrace_worker.stateful import RowsWithState

        processed = _rows_of_task = RowsWithState(_worker, pickle, functions[0], eval_type, *conf)
        answers_with_state = ArrowAnswers(say_taken=True)
        return processed.run, None, answers_with_state, answers_with_state
    function, profiler, _, _ = _original_read_udfs(pickle, functions, eval_type, *conf)
    if eval_type == PythonEvalType.SQL_BATCHED_UDF:
        answers = _rows_of_task = PickledAnswers()
        return function, profiler, answers, answers
    batches = ArrowAnswers(say_taken=eval_type in OVER_ITERATORS)
    return function, profiler, batches, batches


def _read_command(pickle: Any, command: Any) -> Any:
    loaded = _original_read_command(pickle, command)
    if not isinstance(loaded, tuple) or len(loaded) != 4:
        return loaded  # a UDF's function and type: read_udfs uses this function as well
    global _rows_of_task
    function, profiler, _, _ = loaded
    receipts = _rows_of_task = Receipts()
    return function, profiler, receipts, receipts


def _report(failure: BaseException, outfile: IO[bytes], *options: Any) -> None:
    if _rows_of_task is not None and _rows_of_task.row is not None:
        write_int(AT_ROW, outfile)
        write_int(_rows_of_task.row, outfile)
    _original_report(failure, outfile, *options)
