"""A small fraud model. The demo trains it at its start, on payments that it does not score later."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tailrace.demo.payments import encode_payment, is_stolen
from tailrace.errors import TailraceError

#: What the model looks at; the query computes the same columns on the stream.
FEATURES = ("amount", "abroad", "payments_this_minute", "spent_this_minute")

# Far from the numbers of the payments that are scored, so the model cannot memorize those.
FIRST_FOR_TRAINING = 10**9
PAYMENTS_FOR_TRAINING = 30_000
PAYMENTS_PER_MINUTE = 12_000


@dataclass(frozen=True)
class FraudModel:
    classifier: Any
    recall: float
    precision: float
    """Measured on payments that it was not trained on, at a threshold of even odds."""

    def probability(self, features: pd.DataFrame) -> pd.Series:
        return pd.Series(self.classifier.predict_proba(features.to_numpy())[:, 1])


def train() -> FraudModel:
    try:
        from sklearn.ensemble import GradientBoostingClassifier
        from sklearn.metrics import precision_score, recall_score
        from sklearn.model_selection import train_test_split
    except ImportError:
        raise TailraceError(
            "TAILRACE_EXTRA_MISSING",
            "the demo scores payments with a scikit-learn model, and scikit-learn is not installed.",
            'pip install "tailrace[demo]"',
        ) from None
    known = pd.DataFrame(_known_payments())
    learn, hold_out = train_test_split(known, random_state=0)
    classifier = GradientBoostingClassifier(n_estimators=40, max_depth=3, random_state=0)
    classifier.fit(learn[list(FEATURES)].to_numpy(), learn["stolen"])
    predicted = classifier.predict(hold_out[list(FEATURES)].to_numpy())
    return FraudModel(
        classifier,
        recall=float(recall_score(hold_out["stolen"], predicted)),
        precision=float(precision_score(hold_out["stolen"], predicted)),
    )


def _known_payments() -> Iterator[dict[str, float]]:
    numbers = range(FIRST_FOR_TRAINING, FIRST_FOR_TRAINING + PAYMENTS_FOR_TRAINING)
    for minute in range(0, len(numbers), PAYMENTS_PER_MINUTE):
        yield from _minute(numbers[minute : minute + PAYMENTS_PER_MINUTE])


def _minute(numbers: Iterable[int]) -> Iterator[dict[str, float]]:
    count: dict[str, int] = defaultdict(int)
    spent: dict[str, float] = defaultdict(float)
    for number in numbers:
        payment = json.loads(encode_payment(number, 0)[1])
        card = payment["card"]
        count[card] += 1
        spent[card] += payment["amount"]
        yield {
            "amount": payment["amount"],
            "abroad": float(payment["country"] != payment["home_country"]),
            "payments_this_minute": count[card],
            "spent_this_minute": spent[card],
            "stolen": is_stolen(card),
        }
