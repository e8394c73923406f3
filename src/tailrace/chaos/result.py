"""What came of a run: rounds, a tally for each query, pieces, and their sum. All of it can be written to a file."""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from tailrace.chaos.delivery import EXAMPLES, Delivery, Promise
from tailrace.chaos.options import ChaosOptions
from tailrace.chaos.pieces import repeat_command
from tailrace.chaos.schedule import Planned

STEPS = ("process", "session", "queries")


@dataclass(frozen=True)
class Round:
    """One fault and what it took to recover from it, in seconds from the fault's end.

    A kill of the driver ends when the next one is launched, which is at once.
    """

    planned: Planned
    recovered_s: dict[str, float]
    """Until each query gave new rows from every partition."""
    steps_s: dict[str, float]
    """How far the start of a driver was: `process`, `session`, `queries`; empty if it was not started again."""
    ended: int
    """How often a query ended, though the driver lived, and was started again."""
    stuck: bool
    """Whether a query gave no rows until its driver was killed once more."""
    driver_ended: int = 0
    """How often the driver ended by itself and was started again."""
    seconds: float = 0.0
    """How long the round took, with the quiet time before the fault."""
    in_a_row: int = 1
    """The faults, this one included, that hit a query since its last commit; of the query with the most."""
    at_record: int = 0
    """How many records had been sent when the fault struck."""
    refused: str = ""
    """The code with which a changed query was refused; empty if it was not."""

    @property
    def slowest_s(self) -> float:
        return max(self.recovered_s.values())

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Round:
        return cls(**(fields | {"planned": Planned(**fields["planned"])}))


@dataclass(frozen=True)
class DeliveryCounts:
    """How many rows there are of each kind; see `Delivery`. None if a kind was not looked for."""

    sent: int
    due: int
    out: int
    lost: int
    duplicates: int
    unknown: int
    out_of_order: int | None
    wrong: int
    regressions: int
    keys: int | None
    wrong_keys: int
    timer_duplicates: int | None

    def __add__(self, other: DeliveryCounts) -> DeliveryCounts:
        names = [each.name for each in dataclasses.fields(self)]
        return DeliveryCounts(**{name: _sum(getattr(self, name), getattr(other, name)) for name in names})


@dataclass(frozen=True)
class Tally:
    """The figures of one query: counts, and a few of the rows behind each of them."""

    promise: str
    counts: DeliveryCounts
    examples: dict[str, list[Any]]
    broken: list[str]
    """What breaks the promise, in words."""
    reference: str = ""
    """Of a user's own query: what was compared with a reference run."""

    @classmethod
    def of(cls, delivery: Delivery, promise: Promise, reference: str = "") -> Tally:
        fields = dataclasses.asdict(delivery)
        lists = {name: value for name, value in fields.items() if isinstance(value, list)}
        return cls(
            promise.value,
            DeliveryCounts(**(fields | {name: len(value) for name, value in lists.items()})),
            {name: value[:EXAMPLES] for name, value in lists.items() if value},
            delivery.broken(promise),
            reference,
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.promise,
            self.counts + other.counts,
            {
                name: [*self.examples.get(name, []), *other.examples.get(name, [])][:EXAMPLES]
                for name in self.examples | other.examples
            },
            self.broken + other.broken,
            self.reference,
        )

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Tally:
        return cls(**(fields | {"counts": DeliveryCounts(**fields["counts"])}))

    def to_dict(self) -> dict[str, Any]:
        texts = {"examples": self.examples, "broken": self.broken, "reference": self.reference}
        return {"promise": self.promise, **dataclasses.asdict(self.counts), **texts}


def _sum(one: int | None, other: int | None) -> Any:
    return other if one is None else one if other is None else one + other


@dataclass(frozen=True)
class PieceResult:
    options: ChaosOptions
    """Those that repeat the piece."""
    rounds: list[Round]
    tallies: dict[str, Tally]
    unavailable: dict[str, str]
    """Faults that are unavailable here, and why."""
    seconds: float
    log: Path
    failure: str = ""
    """Why the piece could not be finished; empty if it was."""

    def broken(self) -> dict[str, list[str]]:
        return {query: tally.broken for query, tally in self.tallies.items() if tally.broken}

    @property
    def is_good(self) -> bool:
        return not self.broken() and not self.failure

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"options": self.options.to_dict(), "log": str(self.log)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> PieceResult:
        return cls(
            ChaosOptions.from_dict(fields["options"]),
            [Round.from_dict(each) for each in fields["rounds"]],
            {query: Tally.from_dict(tally) for query, tally in fields["tallies"].items()},
            fields["unavailable"],
            fields["seconds"],
            Path(fields["log"]),
            fields["failure"],
        )


@dataclass(frozen=True)
class ChaosResult:
    options: ChaosOptions
    pieces: list[PieceResult] = field(default_factory=list)
    folder: Path | None = None
    """Where state and summary are; none if the run has one piece only and was not asked to be resumable."""

    @property
    def rounds(self) -> list[Round]:
        return [each for piece in self.pieces for each in piece.rounds]

    @property
    def queries(self) -> dict[str, Tally]:
        """The sum of all pieces, by query."""
        by_query: dict[str, list[Tally]] = {}
        for piece in self.pieces:
            for query, tally in piece.tallies.items():
                by_query.setdefault(query, []).append(tally)
        return {query: reduce(Tally.__add__, tallies) for query, tallies in by_query.items()}

    @property
    def unavailable(self) -> dict[str, str]:
        """Faults that no piece had."""
        had = {each.planned.fault for each in self.rounds}
        found = {name: why for piece in self.pieces for name, why in piece.unavailable.items()}
        return {name: why for name, why in found.items() if name not in had}

    @property
    def seconds(self) -> float:
        return sum(piece.seconds for piece in self.pieces)

    @property
    def failures(self) -> list[PieceResult]:
        return [piece for piece in self.pieces if not piece.is_good]

    def _repr_html_(self) -> str:
        from tailrace.chaos.report import to_html  # it reads this class

        return to_html(self)

    def broken(self) -> dict[str, list[str]]:
        """What breaks the promise, by query; empty if every promise is kept."""
        return {query: tally.broken for query, tally in self.queries.items() if tally.broken}

    def rounds_of(self, query: str) -> list[Round]:
        return [each for each in self.rounds if query in each.recovered_s]

    def median_steps_s(self) -> dict[str, float]:
        times = {step: [each.steps_s[step] for each in self.rounds if step in each.steps_s] for step in STEPS}
        return {step: statistics.median(seconds) for step, seconds in times.items() if seconds}


def failure_texts(result: ChaosResult) -> list[str]:
    """Each piece that failed: its seed, what is wrong, and the command that repeats it."""
    return [
        f"seed {piece.options.seed}: "
        + "; ".join([*([piece.failure] if piece.failure else []), *_broken_texts(piece)])
        + f"\n  {repeat_command(piece.options)}"
        for piece in result.failures
    ]


def _broken_texts(piece: PieceResult) -> list[str]:
    return [f"{query}: {', '.join(texts)}" for query, texts in piece.broken().items()]
