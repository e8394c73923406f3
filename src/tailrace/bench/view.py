"""What a benchmark shows while it runs: a bar on a terminal, or else a line for each run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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

from tailrace.bench.result import Run
from tailrace.bench.schedule import Cell
from tailrace.errors import TailraceError
from tailrace.loadtest import LoadSnapshot


class BenchView:
    def __init__(self, console: Console) -> None:
        self.console = console
        self._bar: tuple[Progress, TaskID] | None = None
        self._cell = ""
        self._phase = ""

    @contextmanager
    def runs(self, total: int) -> Iterator[BenchView]:
        if not self.console.is_terminal:
            yield self
            return
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        told = TextColumn("{task.description}")
        # The time left follows the speed of the last half hour: systems differ.
        with Progress(*columns, told, console=self.console, transient=True, speed_estimate_period=1800) as progress:
            self._bar = (progress, progress.add_task("", total=total))
            try:
                yield self
            finally:
                self._bar = None

    def begin(self, cell: Cell, what: int | str) -> None:
        """:param what: the number of the round, or what else is measured."""
        self._cell = f"round {what + 1}: {cell}" if isinstance(what, int) else f"{what}: {cell}"
        self._show(self._cell)

    def watch(self, phase: str, snapshot: LoadSnapshot | None) -> None:
        self._phase = phase or self._phase
        figures = f", p50 {snapshot.p50_ms:.1f} p99 {snapshot.p99_ms:.1f} ms" if snapshot and snapshot.records else ""
        self._show(f"{self._cell}, {self._phase}{figures}")

    def done(self, run: Run) -> None:
        latency = run.latency
        disturbed = f" [yellow](disturbed: {run.disturbance.text()})[/]" if run.disturbance.is_disturbed else ""
        counts = f", [red]{run.lost} lost[/]" if run.lost else ""
        self._line(
            f"[green]✓[/] {escape(self._cell)}: p50 {latency.p50_ms:.1f} p99 {latency.p99_ms:.1f} "
            f"p99.9 {latency.p999_ms:.1f} ms, {run.cpu_s_per_million:.0f} CPU s per million{counts}{disturbed}"
        )

    def note(self, text: str) -> None:
        self._line(f"[green]✓[/] {escape(self._cell)}: {escape(text)}")

    def failed(self, cell: Cell, failure: TailraceError) -> None:
        self._line(f"[red]✗[/] {escape(str(cell))}: {escape(failure.problem)} [dim]{escape(failure.fix)}[/]")

    def unavailable(self, system: str, failure: TailraceError) -> None:
        self.console.print(f"[yellow]Without {system}:[/] {escape(failure.problem)}", soft_wrap=True)

    def _show(self, text: str) -> None:
        if self._bar is not None:
            progress, task = self._bar
            progress.update(task, description=escape(text))

    def _line(self, text: str) -> None:
        if self._bar is not None:
            progress, task = self._bar
            progress.advance(task)
        self.console.print(text, soft_wrap=True)
