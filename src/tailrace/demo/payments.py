"""Made-up card payments, the same for every run, and how decisions are matched with them."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict, deque

CARDS = 2_000
# A few cards are in the wrong hands: a small part of the payments, in bursts on the same card.
STOLEN_CARDS = 12
STOLEN_SHARE = 0.03
COUNTRIES = ("DE", "FR", "GB", "IT", "NL", "PL", "SE", "US")
WINDOW_NS = 60 * 10**9


def encode_payment(number: int, intended_ns: int) -> tuple[bytes, bytes]:
    """The payment with this number, as a Kafka record keyed by card."""
    dice = random.Random(number)
    card = _card(dice)
    stolen = _is_stolen(card)
    payment = {
        "number": number,
        "intended_ns": intended_ns,
        "card": card,
        "amount": round(math.exp(dice.gauss(5.5 if stolen else 3.2, 1.0)), 2),
        "country": dice.choice(COUNTRIES) if stolen else home_country(card),
        "home_country": home_country(card),
    }
    return card.encode(), json.dumps(payment).encode()


def card_of(number: int) -> str:
    return _card(random.Random(number))


def home_country(card: str) -> str:
    return COUNTRIES[int(card[1:]) % len(COUNTRIES)]


def _card(dice: random.Random) -> str:
    return f"c{dice.randrange(STOLEN_CARDS) if dice.random() < STOLEN_SHARE else dice.randrange(CARDS)}"


def _is_stolen(card: str) -> bool:
    return int(card[1:]) < STOLEN_CARDS


class DecisionDecoder:
    """Which payments a decision answers.

    A decision speaks for all payments of its card and minute up to the one it names. In Real-Time
    Mode that is one payment; a micro-batch answers all payments of a card in a batch with one
    decision. Each of them counts from its own intended time, so both modes are measured alike.
    """

    def __init__(self, rate: float) -> None:
        self._interval_ns = 1e9 / rate
        self._start_ns: int | None = None
        self._known = 0
        self._unanswered: dict[tuple[str, int], deque[int]] = defaultdict(deque)

    def __call__(self, _key: bytes | None, value: bytes) -> list[tuple[int, int]]:
        decision = json.loads(value)
        number, intended_ns = int(decision["number"]), int(decision["intended_ns"])
        if self._start_ns is None:
            self._start_ns = intended_ns - int(number * self._interval_ns)
        self._know_payments_up_to(number)
        waiting = self._unanswered[(decision["card"], intended_ns // WINDOW_NS)]
        answered = []
        while waiting and waiting[0] <= number:
            earlier = waiting.popleft()
            answered.append((earlier, self._intended_ns(earlier)))
        # Already answered: the same decision came twice.
        return answered or [(number, intended_ns)]

    def _know_payments_up_to(self, number: int) -> None:
        for known in range(self._known, number + 1):
            self._unanswered[(card_of(known), self._intended_ns(known) // WINDOW_NS)].append(known)
        self._known = max(self._known, number + 1)

    def _intended_ns(self, number: int) -> int:
        assert self._start_ns is not None
        return self._start_ns + int(number * self._interval_ns)
