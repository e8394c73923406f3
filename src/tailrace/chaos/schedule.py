"""The schedule of faults, drawn from a seed: it can be printed in advance and repeated."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Longer than an epoch of five seconds, so faults hit every moment of one.
LONGEST_CALM_S = 6.0


@dataclass(frozen=True)
class Kind:
    """A kind of fault, for the draw."""

    name: str
    weight: int = 1
    """How many of it are in a bag."""
    lasts_s: tuple[float, float] = (0, 0)
    at_most: int | None = None


@dataclass(frozen=True)
class Planned:
    """One fault of a schedule."""

    number: int
    fault: str
    after_s: float
    """How long the queries run undisturbed before it."""
    lasts_s: float
    pick: float
    """From 0 to 1, for what the fault itself must choose, such as one of several processes."""

    def __str__(self) -> str:
        lasts = f" for {self.lasts_s:.1f} s" if self.lasts_s else ""
        return f"{self.number:>3}. after {self.after_s:.1f} s: {self.fault}{lasts}"


def draw(seed: int, rounds: int, kinds: Sequence[Kind]) -> list[Planned]:
    """The schedule of a seed.

    Kinds come out of a bag that is filled again when it is empty, so each has its turn however short the run. A
    longer schedule of the same seed begins with the shorter one.
    """
    dice = random.Random(seed)
    names = _from_bags(dice, kinds)
    by_name = {kind.name: kind for kind in kinds}
    planned = []
    for number, name in zip(range(1, rounds + 1), names, strict=False):
        after_s = round(dice.uniform(0, LONGEST_CALM_S), 2)
        lasts_s = round(dice.uniform(*by_name[name].lasts_s), 2)
        planned.append(Planned(number, name, after_s, lasts_s, round(dice.random(), 3)))
    return planned


def _from_bags(dice: random.Random, kinds: Sequence[Kind]) -> Iterator[str]:
    drawn = dict.fromkeys((kind.name for kind in kinds), 0)
    while True:
        bag = [kind for kind in kinds for _ in range(kind.weight)]
        dice.shuffle(bag)
        left = [kind for kind in bag if kind.at_most is None or drawn[kind.name] < kind.at_most]
        if not left:
            return
        for kind in left:
            if kind.at_most is None or drawn[kind.name] < kind.at_most:
                drawn[kind.name] += 1
                yield kind.name
