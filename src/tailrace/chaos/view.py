"""What a run of chaos shows on the way: a bar with the time that is left on a terminal, a line a round elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tailrace._process.console import working
from tailrace.chaos.options import ChaosOptions
from tailrace.chaos.pieces import repeat_command
from tailrace.chaos.result import ChaosResult, PieceResult, Round

# The time that is left follows the speed of so long: rounds differ, and between pieces nothing counts.
SPEED_OVER_S = 1800


class ChaosView:
    def __init__(self, console: Console) -> None:
        self.console = console
        self._progress: tuple[Progress, TaskID] | None = None

    def introduce(
        self, result: ChaosResult, pieces: Sequence[ChaosOptions], unavailable: Mapping[str, str], folder: Path
    ) -> None:
        options = result.options
        rounds = sum(piece.rounds for piece in pieces)
        split = f" in {len(pieces)} pieces" if len(pieces) > 1 else ""
        self.console.print(
            f"[bold]{rounds} faults{split} of seed {options.seed} against {', '.join(options.queries)}[/], "
            f"{options.rate} records/s.",
            soft_wrap=True,
        )
        for name, reason in unavailable.items():
            self.console.print(f"[yellow]Without {name}:[/] {reason}.", soft_wrap=True)
        if result.pieces:
            self.console.print(f"{len(result.pieces)} pieces with {len(result.rounds)} faults are done.")
        if options.yours is None and len(pieces) > 1:
            self.console.print(f"[dim]If it is interrupted: tailrace chaos --resume {folder}[/]", soft_wrap=True)
        self.console.print(f"[dim]Logs and summary: {folder}[/]", soft_wrap=True)

    def phase(self, name: str) -> AbstractContextManager[None]:
        if self._progress is None:
            return working(name)
        progress, task = self._progress
        progress.update(task, description=name)
        return nullcontext()

    @contextmanager
    def rounds(self, total: int, done: int) -> Iterator[Callable[[Round], None]]:
        """Yields what to call after each round.

        :param done: so many were done by an earlier command.
        """
        if not self.console.is_terminal:
            yield lambda each: self.console.print(_line(each), soft_wrap=True)
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        with Progress(*columns, *times, console=self.console, speed_estimate_period=SPEED_OVER_S) as progress:
            task = progress.add_task("Faults", total=total, completed=done)
            self._progress = (progress, task)

            def show(each: Round) -> None:
                progress.update(task, advance=1, description=f"{each.planned.fault:<20}")
                if each.stuck:
                    progress.console.print(f"[yellow]{_line(each)}[/]", soft_wrap=True)

            try:
                yield show
            finally:
                self._progress = None

    def verdict(self, piece: PieceResult, number: int, total: int) -> None:
        """What came of a piece; only failures on the terminal, where the bar shows the rest."""
        name = f"Piece {number} of {total} (seed {piece.options.seed}, {', '.join(piece.options.queries)})"
        if not piece.is_good:
            texts = [
                *([piece.failure] if piece.failure else []),
                *(text for wrong in piece.broken().values() for text in wrong),
            ]
            self.console.print(f"[red]{name}:[/] {escape('; '.join(texts))}", soft_wrap=True)
            self.console.print(f"  {escape(repeat_command(piece.options))}", soft_wrap=True)
        elif total > 1 and not self.console.is_terminal:
            self.console.print(f"{name}: every promise kept, {piece.seconds:.0f} s", soft_wrap=True)


def _line(done: Round) -> str:
    ended = f", {done.ended} queries restarted" if done.ended else ""
    row = f", fault {done.in_a_row} in a row without a commit" if done.in_a_row > 1 else ""
    refused = f", change refused with {done.refused}" if done.refused else ""
    stuck = ", only after killing the driver again" if done.stuck else ""
    return f"{done.planned}; recovered in {done.slowest_s:.1f} s{ended}{row}{refused}{stuck}"
