"""The shape of a query: its stages, and the task slots that they hold together."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.contract.query_description import Stage


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
