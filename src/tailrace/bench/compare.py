"""Which cells of a benchmark got slower than in an earlier one, beyond what rounds differ by themselves.

A few rounds of one cell can agree by chance, so the noise of a figure is also estimated from all cells of a system. A
difference counts if it is several times that noise, no round of the one side reaches into the other, and it is not too
small to matter. Runs in which the machine was disturbed are left out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tailrace.bench.result import BenchResult, Run
from tailrace.bench.schedule import Cell
from tailrace.errors import TailraceError


class Change(StrEnum):
    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Figure:
    """What is compared, and from what difference on it matters: a share of the old value, and an amount."""

    name: str
    of: Callable[[Run], float]
    share: float
    amount: float


FIGURES = (
    Figure("p50 ms", lambda run: run.latency.p50_ms, 0.10, 0.5),
    Figure("p99 ms", lambda run: run.latency.p99_ms, 0.25, 3.0),
    Figure("CPU s per million", lambda run: run.cpu_s_per_million, 0.10, 5.0),
)
# One round has no spread. Then only a difference that no machine makes by itself counts.
ONE_ROUND_SHARE, ONE_ROUND_FACTOR = 0.75, 2.0
# So many standard errors make a difference. There may be hundreds of figures, and none may be a false alarm.
ERRORS = 5.0


@dataclass(frozen=True)
class Difference:
    workload: str
    system: str
    rate: int
    figure: str
    change: Change
    before: float
    after: float
    reason: str

    @property
    def ratio(self) -> float:
        return self.after / self.before if self.before else float("inf")


@dataclass(frozen=True)
class Comparison:
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]

    def of(self, change: Change) -> list[Difference]:
        return [one for one in self.differences if one.change is change]


def compare(before: BenchResult, after: BenchResult, systems: Sequence[str] = ()) -> Comparison:
    """:param systems: only these; all if there are none."""
    _require_alike(before, after)
    common = [cell for cell in _cells(before) if cell in _cells(after) and (not systems or cell.system in systems)]
    if not common:
        raise TailraceError(
            "TAILRACE_BENCH_NOT_COMPARABLE",
            "the two results have no cell in common.",
            "compare results of the same workloads, systems and rates.",
        )
    differences: list[Difference] = []
    noise = _noise(before, after)
    for cell in common:
        differences += _of_cell(cell, before, after, noise)
    notes = []
    if before.machine != after.machine:
        notes.append(f"The machines differ: {before.machine} / {after.machine}.")
    only = [str(cell) for cell in _cells(before) if cell not in _cells(after)]
    if only:
        notes.append(f"Only in the old result: {', '.join(only)}.")
    return Comparison(tuple(differences), tuple(notes))


def _require_alike(before: BenchResult, after: BenchResult) -> None:
    for name in ("checkpoint_s", "partitions", "record_bytes", "seconds", "warm_up_s"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            raise TailraceError(
                "TAILRACE_BENCH_NOT_COMPARABLE",
                f"the two results were measured in different ways: {name} is {old} and {new}.",
                "measure both with the same options.",
            )


def _cells(result: BenchResult) -> list[Cell]:
    measured = [run.cell for run in result.runs]
    failed = [one.cell for one in result.failures]
    return list(dict.fromkeys([*measured, *failed]))


def _of_cell(cell: Cell, before: BenchResult, after: BenchResult, noise: Noise) -> list[Difference]:
    old, new = before.runs_of(cell), after.runs_of(cell)

    def difference(figure: str, change: Change, values: tuple[float, float], reason: str) -> Difference:
        return Difference(cell.workload, cell.system, cell.rate, figure, change, *values, reason)

    if not old or not new:
        change = Change.SLOWER if old else Change.FASTER if new else Change.SAME
        missing = after.missing_of(cell) if old else before.missing_of(cell)
        reason = f"{'new' if old else 'old'} result: {missing.reason if missing else 'no run'}"
        return [difference("runs", change, (len(old), len(new)), reason)]
    lost = (sum(run.lost for run in old), sum(run.lost for run in new))
    found = [difference("lost", Change.SLOWER, lost, "records were lost")] if lost[1] > lost[0] else []
    quiet_old, quiet_new = _quiet(old), _quiet(new)
    for figure in FIGURES:
        values = [figure.of(run) for run in quiet_old or old], [figure.of(run) for run in quiet_new or new]
        medians = (statistics.median(values[0]), statistics.median(values[1]))
        if not quiet_old or not quiet_new:
            found.append(difference(figure.name, Change.UNDECIDED, medians, "the machine was disturbed in every round"))
        else:
            found.append(difference(figure.name, *_judge(figure, *values, noise.get((cell.system, figure.name), 0.0))))
    return found


def _quiet(runs: list[Run]) -> list[Run]:
    return [run for run in runs if not run.disturbance.is_disturbed]


def _judge(figure: Figure, old: list[float], new: list[float], noise: float) -> tuple[Change, tuple[float, float], str]:
    """:param noise: the figure's relative standard deviation between rounds, over all cells of the system."""
    medians = (statistics.median(old), statistics.median(new))
    by = medians[1] - medians[0]
    if min(len(old), len(new)) == 1:
        least = max(ONE_ROUND_SHARE * min(medians), ONE_ROUND_FACTOR * figure.amount)
        reason = "one round: only large differences count"
    else:
        deviation = max(noise, math.sqrt((_variance(old) + _variance(new)) / 2)) * min(medians)
        error = deviation * math.sqrt(1 / len(old) + 1 / len(new))
        least = max(ERRORS * error, figure.share * min(medians), figure.amount)
        reason = f"differences above {least:.1f} count"
    if abs(by) <= least or _overlap(old, new):
        return Change.SAME, medians, reason
    return Change.SLOWER if by > 0 else Change.FASTER, medians, reason


Noise = dict[tuple[str, str], float]


def _noise(before: BenchResult, after: BenchResult) -> Noise:
    """The relative standard deviation between rounds, by system and figure."""
    variances: dict[tuple[str, str], list[float]] = {}
    for result in (before, after):
        for cell in _cells(result):
            runs = _quiet(result.runs_of(cell))
            for figure in FIGURES if len(runs) > 1 else ():
                found = _variance([figure.of(run) for run in runs])
                variances.setdefault((cell.system, figure.name), []).append(found)
    noise = {key: math.sqrt(statistics.mean(found)) for key, found in variances.items()}
    # Even all cells of one system can agree by chance. No system is much calmer than the machine.
    usual = {
        figure.name: statistics.median([found for (_, name), found in noise.items() if name == figure.name])
        for figure in (FIGURES if noise else ())
    }
    return {(system, name): max(found, usual[name]) for (system, name), found in noise.items()}


def _variance(values: list[float]) -> float:
    """Of the values relative to their mean."""
    mean = statistics.mean(values)
    return statistics.variance(values) / mean**2 if mean else 0.0


def _overlap(old: list[float], new: list[float]) -> bool:
    return min(new) <= max(old) and min(old) <= max(new)
