"""Which payments a decision answers."""

from __future__ import annotations

import json
from typing import Any

from tailrace.demo.payments import DecisionDecoder, card_of, encode_payment


def test_a_decision_answers_all_payments_of_its_card_up_to_it() -> None:
    """As a micro-batch folds them: one decision, and every payment counts from its own time."""
    payments = some_payments()
    numbers = busiest_card(payments)
    decode = DecisionDecoder(RATE, folds=True)
    answered = decode(None, decision(payments[numbers[-1]], counted=len(numbers)))
    assert [number for number, _ in answered] == numbers
    assert [intended for _, intended in answered] == [payments[number]["intended_ns"] for number in numbers]
    again = decode(None, decision(payments[numbers[-1]], counted=len(numbers)))
    assert [number for number, _ in again] == numbers[-1:], "a repeat is seen as one"


def test_a_payment_that_was_not_counted_is_not_answered() -> None:
    payments = some_payments()
    numbers = busiest_card(payments)
    decode = DecisionDecoder(RATE, folds=True)
    first = decode(None, decision(payments[numbers[3]], counted=3))  # one of the first four is missing
    rest = decode(None, decision(payments[numbers[-1]], counted=len(numbers) - 1))
    assert len(first) == 3
    assert [number for number, _ in rest] == numbers[4:], "the one that is missing is missed once"


def test_a_payment_that_was_counted_twice_is_a_duplicate() -> None:
    payments = some_payments()
    numbers = busiest_card(payments)
    answered = DecisionDecoder(RATE, folds=True)(None, decision(payments[numbers[0]], counted=2))
    assert [number for number, _ in answered] == [numbers[0]] * 2


def test_in_real_time_mode_a_decision_answers_its_own_payment_only() -> None:
    payments = some_payments()
    numbers = busiest_card(payments)
    answered = DecisionDecoder(RATE, folds=False)(None, decision(payments[numbers[2]], counted=3))
    assert [number for number, _ in answered] == [numbers[2]], "the two before it still wait for theirs"


RATE = 1000.0


def some_payments() -> list[dict[str, Any]]:
    start_ns = 1_700_000_000 * 10**9
    payments = [json.loads(encode_payment(number, start_ns + number * 10**6)[1]) for number in range(3000)]
    assert all(payment["card"] == card_of(payment["number"]) for payment in payments)
    return payments


def busiest_card(payments: list[dict[str, Any]]) -> list[int]:
    by_card: dict[str, list[int]] = {}
    for payment in payments:
        by_card.setdefault(payment["card"], []).append(payment["number"])
    return max(by_card.values(), key=len)


def decision(payment: dict[str, Any], *, counted: int) -> bytes:
    return json.dumps({**payment, "payments_this_minute": counted}).encode()
