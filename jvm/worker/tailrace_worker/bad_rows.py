"""Lets functions continue after a row on which they raised.

The plugin asks for this if `onError` is not `fail`. A row on which a function raises is answered by its traceback in
the place of its result, and the worker continues with the rest of the batch.
"""

from __future__ import annotations

import io
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from pyspark.serializers import SpecialLengths, write_int, write_with_length
from pyspark.util import PythonEvalType, fail_on_stopiteration, handle_worker_exception

#: In the configuration of the worker command. The plugin uses the same name.
SETTING = "tailrace.skipsBadRows"

#: Precedes the report of an exception that takes the place of a row's result. The plugin uses the same code.
ROW_FAILED = -102

CODE_BYTES = 4

#: Takes a worker's split index and its batches, and returns the results.
BatchFunction = Callable[[int, Iterable[Any]], Iterable[Any]]


class FailedRow:
    """Takes the place of a row's result."""

    __slots__ = ("report",)

    def __init__(self, failure: Exception) -> None:
        """To be called where `failure` is handled."""
        if failure.__traceback__ is not None:
            # The outermost frame is the caller's, which means nothing to users.
            failure.__traceback__ = failure.__traceback__.tb_next
        report = io.BytesIO()
        handle_worker_exception(failure, report)
        if len(report.getvalue()) <= CODE_BYTES:
            # PySpark does not finish the report of a message that is not valid Unicode.
            report = io.BytesIO()
            text = "".join(traceback.format_exception_only(type(failure), failure))
            write_int(SpecialLengths.PYTHON_EXCEPTION_THROWN, report)
            write_with_length(text.encode(errors="backslashreplace"), report)
        #: What a worker sends before it ends with an exception.
        self.report = report.getvalue()


def write_failed(row: FailedRow, stream: IO[bytes]) -> None:
    write_int(ROW_FAILED, stream)
    stream.write(row.report)


class OncePerRow:
    """Calls functions of one row at most once for each row of a batch.

    A row on which one of them raises gets the result None and is recorded as failed. A batch that is evaluated again in
    parts, because one of its results could not be converted, gets the results of the first calls.
    """

    def __init__(self) -> None:
        #: By the row's index in the batch.
        self.failed: dict[int, FailedRow] = {}
        self._functions: list[_Function] = []

    def begin_batch(self) -> None:
        self.failed = {}
        for function in self._functions:
            function.results = {}
            function.row = 0

    def begin_part(self, first_row: int) -> None:
        """The rows from here on are evaluated next."""
        for function in self._functions:
            function.row = first_row

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        own = _Function()
        self._functions.append(own)
        call_function = fail_on_stopiteration(function)

        def call(*args: Any, **kwargs: Any) -> Any:
            row = own.row
            own.row += 1
            if row in self.failed:
                return None
            if row in own.results:
                return own.results[row]
            try:
                result = own.results[row] = call_function(*args, **kwargs)
            except Exception as failure:
                self.failed[row] = FailedRow(failure)
                return None
            return result

        return call


class _Function:
    __slots__ = ("results", "row")

    def __init__(self) -> None:
        self.results: dict[int, Any] = {}
        self.row = 0


def wraps_single_rows(eval_type: int, runner_conf: Any) -> bool:
    """True if the functions take one row at a time and in order, so `OncePerRow` can call them."""
    if eval_type == PythonEvalType.SQL_BATCHED_UDF:
        return True
    return (
        eval_type == PythonEvalType.SQL_ARROW_BATCHED_UDF
        # Its pandas columns do not distinguish a missing result from NaN, and turn integers next to it into floats.
        and not runner_conf.use_legacy_pandas_udf_conversion
        and runner_conf.arrow_concurrency_level <= 0
    )


def skipping_batches(function: BatchFunction, once: OncePerRow) -> BatchFunction:
    """Evaluates a batch that fails in halves, down to the rows that fail on their own."""

    def run(split: int, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            once.begin_batch()
            yield from evaluate(split, batch, 0)

    def evaluate(split: int, batch: Any, first_row: int) -> Iterator[Any]:
        once.begin_part(first_row)
        try:
            [result] = function(split, iter([batch]))
        except Exception as failure:
            is_one_row = batch.num_rows <= 1
            result = (once.failed.get(first_row) or FailedRow(failure)) if is_one_row else None
        if result is None:
            half = batch.num_rows // 2
            yield from evaluate(split, batch.slice(0, half), first_row)
            yield from evaluate(split, batch.slice(half), first_row + half)
        elif isinstance(result, FailedRow):
            yield result
        else:
            yield from _with_failed_rows(result, once.failed, first_row)

    return run


def _with_failed_rows(result: Any, failed: dict[int, FailedRow], first_row: int) -> Iterator[Any]:
    begin = 0
    for row in sorted(failed):
        index = row - first_row
        if not 0 <= index < result.num_rows:
            continue
        if index > begin:
            yield result.slice(begin, index - begin)
        yield failed[row]
        begin = index + 1
    if begin < result.num_rows:
        yield result.slice(begin) if begin else result


def skipping_iterators(function: BatchFunction) -> BatchFunction:
    """Calls a function over an iterator again when it raised, with the rows that have no result, one at a time."""

    def run(split: int, batches: Iterable[Any]) -> Iterator[Any]:
        source = _UnansweredBatches(batches)
        while True:
            try:
                for result in function(split, source):
                    source.answered(result.num_rows)
                    yield result
                return
            except Exception as failure:
                if source.is_broken or not source.taken:
                    raise  # no row is to blame
                failed = FailedRow(failure)
            rows = source.give_back()
            if len(rows) == 1:
                yield failed
            elif source.gave_single_rows:
                # The function reads ahead, so any of them may be the reason.
                yield from each_alone(split, rows)
            else:
                source.offer_again(rows)

    def each_alone(split: int, rows: list[Any]) -> Iterator[Any]:
        for row in rows:
            try:
                results = list(function(split, iter([row])))
            except Exception as failure:
                results = [FailedRow(failure)]
            yield from results

    return run


class _UnansweredBatches:
    """An iterator over batches that remembers those without results."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = iter(batches)
        self._again: deque[Any] = deque()
        self.taken: deque[Any] = deque()
        #: True if reading failed, rather than the function.
        self.is_broken = False
        self.gave_single_rows = False

    def __iter__(self) -> _UnansweredBatches:
        return self

    def __next__(self) -> Any:
        if self._again:
            batch = self._again.popleft()
        else:
            try:
                batch = next(self._batches)
            except StopIteration:
                raise
            except BaseException:
                self.is_broken = True
                raise
        self.taken.append(batch)
        return batch

    def answered(self, rows: int) -> None:
        """The function gave so many results; they belong to the first rows."""
        while rows > 0 and self.taken:
            first = self.taken.popleft()
            if first.num_rows > rows:
                self.taken.appendleft(first.slice(rows))
            rows -= first.num_rows

    def give_back(self) -> list[Any]:
        """The rows without results, each as a batch of its own; they are no longer this iterator's."""
        self.gave_single_rows = all(batch.num_rows == 1 for batch in self.taken)
        rows = [batch.slice(row, 1) for batch in self.taken for row in range(batch.num_rows)]
        self.taken.clear()
        return rows

    def offer_again(self, rows: list[Any]) -> None:
        self._again.extendleft(reversed(rows))
