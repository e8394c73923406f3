"""What is known of a query before it runs: its stages, operators and sources, as the engine would plan them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operator:
    """One operation of a stage, by the name that users know."""

    name: str
    ours: bool = False
    """Tailrace's own operator, in the place of one of Spark's that would hold rows back."""
    stateful: bool = False
    line: str | None = None
    """Where the user wrote it, as `file:line`, if that is known."""


@dataclass(frozen=True)
class Stage:
    """A part of the query between two shuffles; all stages of a real-time query run at the same time."""

    number: int
    inputs: tuple[int, ...]
    """The stages whose rows it gets through a streaming shuffle."""
    sources: tuple[str, ...]
    """What it reads by itself, such as `kafka: payments`."""
    operators: tuple[Operator, ...]
    tasks: int | None
    """How many task slots it holds; none if the number of its source's partitions could not be found out."""

    @property
    def stateful(self) -> bool:
        return any(operator.stateful for operator in self.operators)


@dataclass(frozen=True)
class QueryShape:
    """The stages of a query, from its sources to its sink."""

    stages: tuple[Stage, ...]
    sink: str | None = None
    """The sink's format, such as `kafka`; none for a query whose sink is not known."""
    epoch_ms: int | None = None

    @property
    def slots(self) -> int | None:
        """The task slots that all stages need together; none if a stage's are not known."""
        tasks = [stage.tasks for stage in self.stages]
        return None if None in tasks else sum(task for task in tasks if task is not None)

    @property
    def stateful(self) -> bool:
        return any(stage.stateful for stage in self.stages)

    @property
    def shuffles(self) -> bool:
        return any(stage.inputs for stage in self.stages)

    @property
    def arithmetic(self) -> str:
        """How the slots add up: `8 + 20 = 28`."""
        terms = ["?" if stage.tasks is None else str(stage.tasks) for stage in self.stages]
        total = "?" if self.slots is None else str(self.slots)
        return total if len(terms) == 1 else f"{' + '.join(terms)} = {total}"


def shape_from(stages: Sequence[Mapping[str, Any]], sink: str | None, epoch_ms: int | None) -> QueryShape:
    """The shape that the plugin describes."""
    return QueryShape(tuple(map(_stage_from, stages)), sink, epoch_ms)


def _stage_from(stage: Mapping[str, Any]) -> Stage:
    return Stage(
        number=stage["number"],
        inputs=tuple(stage["inputs"]),
        sources=tuple(stage["sources"]),
        operators=tuple(Operator(**operator) for operator in stage["operators"]),
        tasks=stage.get("tasks"),
    )
