"""Reads pickled rows and answers them: for functions whose rows do not travel as Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

from pyspark.serializers import CPickleSerializer, write_int

from tailrace_worker.bad_rows import FailedRow, OncePerRow, write_failed


class RowByRow:
    """Reads pickled lists of rows and hands them to the function one by one, so a failure can name its row."""

    def __init__(self) -> None:
        self._pickle = CPickleSerializer()
        self.row: int | None = None

    def load_stream(self, stream: IO[bytes]) -> Iterator[Any]:
        for rows in self._pickle.load_stream(stream):
            self.begin(len(rows))
            for self.row, value in enumerate(rows):
                yield value
            self.row = None
            self.end()

    def begin(self, size: int) -> None:
        """Called before the first row of a batch."""

    def end(self) -> None:
        """Called when the function asks for a row after the last one of a batch."""


class PickledAnswers(RowByRow):
    """Answers each list of rows with a list of as many results."""

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
                self.row = None  # if pickling fails, any of the rows may be the reason
                self.write(answer, stream)
                stream.flush()
                answer = []

    def write(self, answer: list[Any], stream: IO[bytes]) -> None:
        self._pickle.dump_stream([answer], stream)


class SkippingPickledAnswers(PickledAnswers):
    """As `PickledAnswers`; a row on which the functions raised is answered by its traceback."""

    def __init__(self, once: OncePerRow) -> None:
        super().__init__()
        self._once = once

    def begin(self, size: int) -> None:
        super().begin(size)
        self._once.begin_batch()

    def write(self, answer: list[Any], stream: IO[bytes]) -> None:
        results: list[Any] = []
        for row, result in enumerate(answer):
            if (failed := self._once.failed.get(row)) is None:
                results.append(result)
            else:
                self._write_results(results, stream)
                write_failed(failed, stream)
                results = []
        self._write_results(results, stream)

    def _write_results(self, results: list[Any], stream: IO[bytes]) -> None:
        try:
            if results:
                super().write(results, stream)
        except Exception as failure:
            # Nothing was written: a list is pickled as a whole first.
            failed = FailedRow(failure) if len(results) == 1 else None
        else:
            return
        if failed is not None:
            write_failed(failed, stream)
        else:
            for result in results:
                self._write_results([result], stream)


class Acknowledgements(RowByRow):
    """Answers each list of rows with an empty frame, for a function without results."""

    def __init__(self, out: IO[bytes]) -> None:
        super().__init__()
        self._out = out

    def load_stream(self, stream: IO[bytes]) -> Iterator[Any]:
        self._rows = super().load_stream(stream)
        return self._rows

    def end(self) -> None:
        write_int(0, self._out)
        self._out.flush()

    def dump_stream(self, results: Iterable[Any], stream: IO[bytes]) -> None:
        for _ in results:
            pass
        # A writer whose open() returned False leaves its rows. They are read and dropped, as in micro-batch.
        for _ in self._rows:
            pass
