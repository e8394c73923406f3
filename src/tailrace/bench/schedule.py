"""The order of the runs."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.bench.options import BenchOptions
from tailrace.bench.systems import SYSTEMS


@dataclass(frozen=True)
class Cell:
    """A workload on a system at a rate: what is measured once a round."""

    workload: str
    system: str
    rate: int

    def __str__(self) -> str:
        return f"{self.workload} on {self.system} at {self.rate}/s"

    @property
    def refusal(self) -> str | None:
        """Why the system cannot run the workload."""
        return SYSTEMS[self.system].cannot.get(self.workload)


def cells(options: BenchOptions) -> list[Cell]:
    """Every cell, those that cannot be run too."""
    return [
        Cell(workload, system, rate)
        for workload in options.workloads
        for rate in options.rates
        for system in options.systems
    ]


def schedule(options: BenchOptions) -> list[tuple[int, Cell]]:
    """Each round runs all cells that can be run, the systems of a workload one after the other.

    The machine changes with the hour, so systems that are compared run close together. Each round begins with another
    system, so none is always the first.
    """
    runs = []
    for number in range(options.rounds):
        shift = number % len(options.systems)
        systems = options.systems[shift:] + options.systems[:shift]
        for workload in options.workloads:
            for rate in options.rates:
                runs += [(number, Cell(workload, system, rate)) for system in systems]
    return [(number, cell) for number, cell in runs if cell.refusal is None]
