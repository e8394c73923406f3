"""Made-up card payments, the same in every run, and the matching of decisions with them."""

from __future__ import annotations

import json
import math
import random
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

CARDS = 2_000
# A few cards are stolen: a small part of the payments, in bursts on the same card.
STOLEN_CARDS = 12
STOLEN_SHARE = 0.03
COUNTRIES = ("DE", "FR", "GB", "IT", "NL", "PL", "SE", "US")
WINDOW_NS = 60 * 10**9


def encode_payment(number: int, intended_ns: int) -> tuple[bytes, bytes]:
    """The payment with this number, as a Kafka record keyed by card."""
    dice = random.Random(number)
    card = _card(dice)
    stolen = is_stolen(card)
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


def is_stolen(card: str) -> bool:
    return int(card[1:]) < STOLEN_CARDS


class DecisionDecoder:
    """Which payments a decision answers.

    In Real-Time Mode each payment gets its own decision. A micro-batch (`folds`) answers all payments of a card in a
    batch with one decision, which counts for each of them. Each is timed from its own intended time, so both modes are
    measured alike.

    A decision also carries the number of payments it counted. If that is too low, the missing ones stay unanswered and
    are lost; if it is too high, some were counted more than once.
    """

    def __init__(self, rate: float, folds: bool) -> None:
        self._folds = folds
        self._interval_ns = 1e9 / rate
        self._start_ns: int | None = None
        self._known = 0
        self._of: dict[tuple[str, int], _CardMinute] = defaultdict(_CardMinute)

    def __call__(self, _key: bytes | None, value: bytes) -> list[tuple[int, int]]:
        decision = json.loads(value)
        number, intended_ns = int(decision["number"]), int(decision["intended_ns"])
        if self._start_ns is None:
            self._start_ns = intended_ns - int(number * self._interval_ns)
        self._know_payments_up_to(number)
        minute = self._of[(decision["card"], intended_ns // WINDOW_NS)]
        answered = minute.answer(number, int(decision["payments_this_minute"]), self._folds)
        return [(earlier, self._intended_ns(earlier)) for earlier in answered]

    def _know_payments_up_to(self, number: int) -> None:
        for known in range(self._known, number + 1):
            minute = self._of[(card_of(known), self._intended_ns(known) // WINDOW_NS)]
            minute.payments.append(known)
            minute.unanswered.append(known)
        self._known = max(self._known, number + 1)

    def _intended_ns(self, number: int) -> int:
        assert self._start_ns is not None
        return self._start_ns + int(number * self._interval_ns)


@dataclass
class _CardMinute:
    """The payments of one card in one minute, in order."""

    payments: list[int] = field(default_factory=list)
    unanswered: list[int] = field(default_factory=list)
    uncounted: int = 0

    def answer(self, number: int, counted: int, folds: bool) -> list[int]:
        """The payments that this decision answers; a repeated number is a duplicate."""
        missing = bisect_right(self.payments, number) - counted - self.uncounted
        self.uncounted += missing
        counted_twice = [number] * -missing
        if not folds:
            return [number, *counted_twice]
        waiting = [earlier for earlier in self.unanswered if earlier <= number]
        self.unanswered = self.unanswered[len(waiting) :]
        return [*(waiting[max(missing, 0) :] or [number]), *counted_twice]
