"""A small fraud model, trained on made-up payments when the application starts. Yours would come from your registry."""

from __future__ import annotations

import random
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

#: What the model looks at, in this order.
FEATURES = ("amount", "abroad", "payments", "spent")


def train() -> Any:
    dice = random.Random(7)
    rows, stolen = [], []
    for number in range(4000):
        is_stolen = number % 4 == 0
        payments = dice.randint(3, 12) if is_stolen else dice.randint(1, 3)
        amount = dice.uniform(100, 900) if is_stolen else dice.uniform(5, 150)
        abroad = dice.random() < (0.8 if is_stolen else 0.05)
        rows.append((amount, float(abroad), payments, amount * payments))
        stolen.append(is_stolen)
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, stolen)
