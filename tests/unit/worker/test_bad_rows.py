"""Rows on which a function raises: the worker reports each of them in its place, and continues."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import serializers

from tests.helpers.tree import ROOT

SERIALIZERS: Any = serializers


@pytest.fixture
def bad_rows(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "jvm" / "worker"))
    from tailrace_worker import bad_rows

    return bad_rows


@pytest.fixture
def pickled_answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "jvm" / "worker"))
    from tailrace_worker import pickled_answers

    return pickled_answers


def batch(values: Iterable[Any]) -> Any:
    return pa.RecordBatch.from_arrays([pa.array(list(values))], ["value"])


def values_of(results: Iterable[Any]) -> list[Any]:
    """The values in order; the last line of its traceback for a row that failed."""
    found: list[Any] = []
    for result in results:
        if hasattr(result, "report"):
            code, length = struct.unpack("!ii", result.report[:8])
            assert code == SERIALIZERS.SpecialLengths.PYTHON_EXCEPTION_THROWN
            text = result.report[8:].decode()
            assert len(result.report) == 8 + length
            found.append(text.strip().splitlines()[-1])
        else:
            found.extend(result.column(0).to_pylist())
    return found


def by_batch(function: Callable[[list[Any]], list[Any]], calls: list[int] | None = None) -> Any:
    """As PySpark calls a vectorized function."""

    def run(split: int, batches: Iterable[Any]) -> Iterator[Any]:
        for one in batches:
            values = one.column(0).to_pylist()
            if calls is not None:
                calls.append(len(values))
            yield batch(function(values))

    return run


def fail_at(*bad: int) -> Callable[[int], int]:
    def call(value: int) -> int:
        if value in bad:
            raise ValueError(f"no {value}")
        return value * 10

    return call


@pytest.mark.parametrize("bad", [(), (0,), (7,), (15,), (3, 4), (0, 15), tuple(range(16))])
def test_a_batch_is_searched_in_halves(bad_rows: Any, bad: tuple[int, ...]) -> None:
    calls: list[int] = []
    function = by_batch(lambda values: [fail_at(*bad)(value) for value in values], calls)
    skipping = bad_rows.skipping_batches(function, bad_rows.OncePerRow())
    wanted = [f"ValueError: no {i}" if i in bad else i * 10 for i in range(16)]
    assert values_of(skipping(0, iter([batch(range(16)), batch([100])]))) == [*wanted, 1000]
    # One search takes two calls at each of the four levels.
    assert len(calls) <= 2 + 8 * len(bad)


def test_a_function_of_one_row_is_called_once_for_each(bad_rows: Any) -> None:
    called: list[int] = []
    once = bad_rows.OncePerRow()

    def function(value: int) -> Any:
        called.append(value)
        if value == 5:
            raise ValueError("no 5")
        return "many" if value == 9 else value

    wrapped = once.wrap(function)
    # The result of row 9 cannot be converted, so the batch is evaluated in parts.
    skipping = bad_rows.skipping_batches(by_batch(lambda values: [wrapped(value) for value in values]), once)
    found = values_of(skipping(0, iter([batch(range(16)), batch(range(16, 20))])))
    assert called == list(range(20))
    assert found[5] == "ValueError: no 5"
    assert "many" in found[9]
    assert [value for row, value in enumerate(found) if row not in (5, 9)] == [
        value for value in range(20) if value not in (5, 9)
    ]


def test_a_row_that_one_function_failed_on_is_not_passed_to_the_next(bad_rows: Any) -> None:
    once = bad_rows.OncePerRow()
    first, second = once.wrap(fail_at(1)), once.wrap(lambda value: value)
    once.begin_batch()
    assert [first(value) for value in range(3)] == [0, None, 20]
    assert [second(value) for value in range(3)] == [0, None, 2]
    assert list(once.failed) == [1]


def test_stop_iteration_is_an_error_of_its_row(bad_rows: Any) -> None:
    once = bad_rows.OncePerRow()
    wrapped = once.wrap(lambda value: next(iter([])) if value == 1 else value)
    once.begin_batch()
    assert [wrapped(value) for value in range(3)] == [0, None, 2]
    assert b"STOP_ITERATION_OCCURRED" in once.failed[1].report


def test_a_message_that_is_not_unicode_is_reported(bad_rows: Any) -> None:
    once = bad_rows.OncePerRow()

    def function(value: int) -> int:
        raise ValueError("broken \ud800")

    once.wrap(function)(1)
    assert b"broken \\ud800" in once.failed[0].report


def over_iterator(function: Callable[[Iterator[list[Any]]], Iterator[list[Any]]]) -> Any:
    def run(split: int, batches: Iterable[Any]) -> Iterator[Any]:
        for values in function(one.column(0).to_pylist() for one in batches):
            yield batch(values)

    return run


def test_a_function_over_an_iterator_is_started_again(bad_rows: Any) -> None:
    starts: list[int] = []

    def function(batches: Iterator[list[int]]) -> Iterator[list[int]]:
        starts.append(1)
        for values in batches:
            yield [fail_at(3, 20)(value) for value in values]

    skipping = bad_rows.skipping_iterators(over_iterator(function))
    found = values_of(skipping(0, iter([batch(range(3)), batch(range(3, 8)), batch(range(8, 30)), batch([30])])))
    assert found == [f"ValueError: no {i}" if i in (3, 20) else i * 10 for i in range(31)]
    assert len(starts) <= 5


def test_a_function_that_reads_ahead(bad_rows: Any) -> None:
    def function(batches: Iterator[list[int]]) -> Iterator[list[int]]:
        held: list[list[int]] = []
        for values in batches:
            held.append(values)
            if len(held) == 3:
                yield [fail_at(4)(value) for value in held.pop(0)]
        for values in held:
            yield [fail_at(4)(value) for value in values]

    skipping = bad_rows.skipping_iterators(over_iterator(function))
    found = values_of(skipping(0, iter([batch([i]) for i in range(9)])))
    assert found == [f"ValueError: no {i}" if i == 4 else i * 10 for i in range(9)]


def test_an_error_without_a_row_is_raised(bad_rows: Any) -> None:
    def before_the_loop(batches: Iterator[list[int]]) -> Iterator[list[int]]:
        raise RuntimeError("no model")
        yield from batches

    with pytest.raises(RuntimeError, match="no model"):
        list(bad_rows.skipping_iterators(over_iterator(before_the_loop))(0, iter([batch([1])])))

    def broken() -> Iterator[Any]:
        yield batch([1])
        raise OSError("the socket is closed")

    with pytest.raises(OSError, match="closed"):
        list(bad_rows.skipping_iterators(over_iterator(lambda batches: list(batches).__iter__()))(0, broken()))


def frames_of(written: bytes) -> list[Any]:
    """What the plugin reads: a list of results, or a traceback."""
    stream = io.BytesIO(written)
    found: list[Any] = []
    while head := stream.read(4):
        [length] = struct.unpack("!i", head)
        if length >= 0:
            found.append(SERIALIZERS.CPickleSerializer().loads(stream.read(length)))
        else:
            assert length == -102
            _, size = struct.unpack("!ii", stream.read(8))
            found.append(stream.read(size).decode().strip().splitlines()[-1])
    return found


def test_pickled_results_and_failures_keep_their_order(bad_rows: Any, pickled_answers: Any) -> None:
    once = bad_rows.OncePerRow()
    answers = pickled_answers.SkippingPickledAnswers(once)
    function = once.wrap(lambda value: (i for i in range(0)) if value == 6 else fail_at(0, 3, 4)(value))
    rows, out = io.BytesIO(), io.BytesIO()
    SERIALIZERS.CPickleSerializer().dump_stream([list(range(8)), [8]], rows)
    rows.seek(0)
    answers.dump_stream((function(value) for value in answers.load_stream(rows)), out)
    found = frames_of(out.getvalue())
    assert found[:4] == ["ValueError: no 0", [10, 20], "ValueError: no 3", "ValueError: no 4"]
    assert "generator" in found[5]
    assert [found[4], *found[6:]] == [[50], [70], [80]]
