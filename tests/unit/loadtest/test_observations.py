"""What an observer remembers of the records that reach it, and how it recognizes them."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from tailrace.errors import TailraceError
from tailrace.loadtest.epochs import epoch_ends, wait_for_epochs
from tailrace.loadtest.observations import ABSENT, Observations
from tailrace.loadtest.records import decode_json, encode_json, new_function


def observed(*arrivals: tuple[int, int]) -> Observations:
    seen = Observations()
    for number, latency_us in arrivals:
        seen.add(number, latency_us)
    return seen


def test_the_first_arrival_counts_and_the_others_are_duplicates() -> None:
    seen = observed((0, 10), (2, 30), (0, 99), (2, 99), (2, 99))
    assert seen.result(0, 4) == {
        "event": "result",
        "first": 0,
        "latencies_us": [10, ABSENT, 30, ABSENT],
        "duplicates": 3,
    }
    assert seen.seen == 2


def test_only_the_records_of_a_measurement_count() -> None:
    seen = observed((0, 10), (0, 10), (1, 20), (2, 30), (2, 30))
    assert seen.result(1, 3)["latencies_us"] == [20, 30]
    assert seen.result(1, 3)["duplicates"] == 1


def test_a_measurement_is_complete_when_every_record_has_arrived() -> None:
    seen = observed((0, 10), (2, 30))
    assert [seen.complete(0, 1), seen.complete(0, 3), seen.complete(2, 3), seen.complete(2, 4)] == [
        True,
        False,
        True,
        False,
    ]
    seen.add(1, 20)
    assert seen.complete(0, 3)


def test_a_clock_that_is_behind_gives_no_negative_latency() -> None:
    assert observed((0, -5)).result(0, 1)["latencies_us"] == [0]


def test_a_record_says_its_number_and_when_it_was_due() -> None:
    key, value = encode_json(1234, 5_000_000_000)
    assert key == b"34"
    assert decode_json(key, value) == [(1234, 5_000_000_000)]


class Folding:
    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, key: bytes | None, value: bytes) -> list[tuple[int, int]]:
        return decode_json(key, value) * self.times


def test_a_decoder_is_a_function_or_a_class_with_options() -> None:
    value = encode_json(7, 1)[1]
    assert new_function("tailrace.loadtest.records:decode_json", {})(None, value) == [(7, 1)]
    assert new_function(f"{__name__}:Folding", {"times": 2})(None, value) == [(7, 1), (7, 1)]


class FakeQuery:
    """The part of a query that its epochs are read from."""

    def __init__(self, *triggers_ms: int) -> None:
        self.recentProgress: list[Any] = [
            {"timestamp": "2026-01-01T00:00:00.500Z", "durationMs": {"triggerExecution": ms}} for ms in triggers_ms
        ]


def test_an_epoch_ends_when_its_trigger_is_over() -> None:
    ends = epoch_ends(cast(StreamingQuery, FakeQuery(0, 1500)))
    assert ends == [1767225600.5, 1767225602.0]


def test_epochs_that_never_end_are_an_error() -> None:
    query = cast(StreamingQuery, FakeQuery(1))
    wait_for_epochs(query, 1, timeout_s=0)
    with pytest.raises(TailraceError) as refused:
        wait_for_epochs(query, 2, timeout_s=0)
    assert refused.value.code == "TAILRACE_QUERY_FAILED"
