"""What an observer remembers, also of pipelines that drop records on purpose."""

from __future__ import annotations

from tailrace.loadtest.observations import ABSENT, Observations
from tailrace.loadtest.records import new_function


def is_even(number: int) -> bool:
    return number % 2 == 0


class Greeting:
    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self) -> str:
        return f"hello {self.name}"


def test_it_is_complete_when_all_that_are_answered_have_arrived() -> None:
    seen = Observations()
    for number in (0, 2, 6):
        seen.add(number, 1000)
    assert not seen.complete(0, 8, is_even)
    seen.add(4, 1000)
    assert seen.complete(0, 8, is_even)
    assert not seen.complete(0, 8), "without a filter, the odd ones are missing"
    assert not seen.complete(0, 10, is_even), "8 has not arrived"
    assert seen.complete(4, 4)


def test_a_repeated_record_is_a_duplicate_and_keeps_its_first_latency() -> None:
    seen = Observations()
    seen.add(3, 1000)
    seen.add(3, 9000)
    assert seen.result(2, 5) == {
        "event": "result",
        "first": 2,
        "latencies_us": [ABSENT, 1000, ABSENT],
        "duplicates": 1,
    }


def test_functions_and_classes_by_name() -> None:
    assert new_function(f"{__name__}:Greeting", {"name": "you"})() == "hello you"
    assert new_function(f"{__name__}:is_even", {})(4)
