"""A user's output against two references: what differs from both is found, what chance decides is not compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tailrace.chaos.delivery import Delivery, Promise, compare
from tailrace.chaos.expected import Answer, Sent
from tailrace.chaos.records import key_of, record
from tailrace.chaos.reference_check import Compared, compare_with_references

COUNT = 400
SENT = [Sent(record(number), number % 2, number // 2) for number in range(COUNT)]
IN_TURN = list(range(COUNT))
# As a micro-batch has it: one partition after the other.
FIRST_0, FIRST_1 = (sorted(IN_TURN, key=lambda number: number % 2 != first) for first in (0, 1))


def row_by_row(numbers: Sequence[int], at: str) -> list[Answer]:
    return [Answer(key_of(n), n, {"payment": n, "doubled": 2 * n, "at": f"{at}{n}"}) for n in numbers]


def highest(numbers: Sequence[int], every: int) -> list[Answer]:
    """The highest number of each key so far: an update for each record, or one for each batch."""
    found: dict[str, int] = {}
    answers = []
    for start in range(0, len(numbers), every):
        changed = {}
        for number in numbers[start : start + every]:
            found[key_of(number)] = max(number, found.get(key_of(number), 0))
            changed[key_of(number)] = number
        answers += [Answer(k, n, {"payment": n, "max": found[k], "latest": n}) for k, n in changed.items()]
    return answers


ROWS = (row_by_row(FIRST_0, "a"), row_by_row(FIRST_1, "b"))
UPDATES = (highest(FIRST_0, COUNT), highest(FIRST_1, COUNT // 4))


def judged(answers: list[Answer], references: tuple[list[Answer], list[Answer]]) -> tuple[Delivery, Compared]:
    delivery = compare("yours", SENT, answers)
    return delivery, compare_with_references(delivery, SENT, answers, references, "payment")


def test_a_query_that_works_record_by_record() -> None:
    delivery, compared = judged(row_by_row(IN_TURN, "c"), ROWS)
    assert delivery.broken(Promise.EXACTLY_ONCE) == []
    assert compared == Compared(COUNT, 20, order=True)
    assert "400 rows" in str(compared)


def test_a_wrong_value_is_found() -> None:
    answers = row_by_row(IN_TURN, "c")
    answers[7] = replace(answers[7], fields={**answers[7].fields, "doubled": 0})
    assert judged(answers, ROWS)[0].wrong == [7]


def test_a_value_that_is_missing_is_found() -> None:
    answers = row_by_row(IN_TURN, "c")
    answers[7] = replace(answers[7], fields={"payment": 7})
    assert judged(answers, ROWS)[0].wrong == [7]


def test_a_wrong_order_is_found() -> None:
    answers = row_by_row(IN_TURN, "c")
    answers[0], answers[2] = answers[2], answers[0]
    assert judged(answers, ROWS)[0].out_of_order == [0]


def test_a_stale_last_record_is_found() -> None:
    delivery, _ = judged([*row_by_row(IN_TURN, "c"), *row_by_row([0], "c")], ROWS)
    assert delivery.wrong_keys == [key_of(0)]
    assert delivery.broken(Promise.AT_LEAST_ONCE)


def test_an_aggregation() -> None:
    """Real-Time Mode has an update for each record."""
    delivery, compared = judged(highest(IN_TURN, 1), UPDATES)
    assert delivery.broken(Promise.EXACTLY_ONCE) == []
    assert compared == Compared(0, 20, order=False)


def test_a_stale_update_is_found() -> None:
    delivery, _ = judged([*highest(IN_TURN, 1), highest(IN_TURN, 1)[0]], UPDATES)
    assert delivery.wrong_keys == [key_of(0)]
    assert delivery.broken(Promise.AT_LEAST_ONCE)


def test_a_key_that_never_came_is_found() -> None:
    answers = [answer for answer in highest(IN_TURN, 1) if answer.key != "k3"]
    assert judged(answers, UPDATES)[0].wrong_keys == ["k3"]


@pytest.mark.parametrize("references", [([], []), (ROWS[0], []), (row_by_row([1], "a"), row_by_row([2], "b"))])
def test_references_that_agree_in_nothing(references: tuple[list[Answer], list[Answer]]) -> None:
    delivery, compared = judged(row_by_row(IN_TURN, "c"), references)
    assert delivery.broken(Promise.EXACTLY_ONCE) == []
    assert "nothing was compared" in str(compared)
