"""The Python function of the workloads that call Python for each record."""

from __future__ import annotations

import math

LETTERS = 64


def score(amount: int, text: str) -> float:
    """A small model: a loop over the text and a logistic function."""
    signal = 0.0
    for letter in text[:LETTERS]:
        signal = signal * 0.9 + ord(letter) % 7
    return round(1 / (1 + math.exp(20 - signal - amount / 100)), 4)
