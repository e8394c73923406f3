"""What a run of chaos shows on the way: a bar on a terminal, a line a round elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tailrace._process.console import working
from tailrace.chaos.options import ChaosOptions
from tailrace.chaos.schedule import Planned

if TYPE_CHECKING:
    from tailrace.chaos.run import Round


class ChaosView:
    def __init__(self, console: Console) -> None:
        self.console = console

    def introduce(
        self, options: ChaosOptions, schedule: Sequence[Planned], unavailable: Mapping[str, str], log: Path
    ) -> None:
        kinds = ", ".join(sorted({planned.fault for planned in schedule}))
        self.console.print(
            f"[bold]{len(schedule)} faults of seed {options.seed} against {', '.join(options.queries)}[/], "
            f"{options.rate} records/s: {kinds}.",
            soft_wrap=True,
        )
        for name, reason in unavailable.items():
            self.console.print(f"[yellow]Without {name}:[/] {reason}.", soft_wrap=True)
        self.console.print(f"[dim]Log of the queries: {log}[/]", soft_wrap=True)

    def phase(self, name: str) -> AbstractContextManager[None]:
        return working(name)

    @contextmanager
    def rounds(self, total: int) -> Iterator[Callable[[Round], None]]:
        if not self.console.is_terminal:
            yield lambda done: self.console.print(_line(done), soft_wrap=True)
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self.console) as progress:
            task = progress.add_task("Faults", total=total)

            def show(done: Round) -> None:
                progress.update(task, advance=1, description=f"{done.planned.fault:<20}")
                if done.stuck:
                    progress.console.print(f"[yellow]{_line(done)}[/]", soft_wrap=True)

            yield show


def _line(done: Round) -> str:
    ended = f", {done.ended} queries restarted" if done.ended else ""
    stuck = ", only after killing the driver again" if done.stuck else ""
    return f"{done.planned}; recovered in {done.slowest_s:.1f} s{ended}{stuck}"
