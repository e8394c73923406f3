"""What the demo shows while it runs: a live table on a terminal, or else a line now and then."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tailrace._process.console import working
from tailrace.demo.options import SinkName
from tailrace.loadtest import LoadSnapshot

BARS = "▁▂▃▄▅▆▇█"
LINES_EVERY_S = 10
QUERY = "decide(read_payments(spark, …))\n    .writeStream"
OUTPUTS = {
    SinkName.KAFKA: '.format("kafka").option("topic", "decisions").outputMode("update")',
    SinkName.POSTGRESQL: '.format("tailrace-postgresql").option("dbtable", "decisions").outputMode("update")',
    SinkName.REDIS: '.format("tailrace-redis").option("structure", "stream").outputMode("update")',
}


class DemoView:
    def __init__(self, console: Console) -> None:
        self.console = console
        self._history: dict[str, list[LoadSnapshot]] = {}

    def introduce(self, rate: int, epoch_s: int, sink: SinkName) -> None:
        # The sinks of the stores are for Real-Time Mode only.
        differ = "; the modes differ in one line" if sink is SinkName.KAFKA else ""
        self.console.print(f"[bold]{rate} card payments a second, each scored in flight{differ}:[/]")
        self.console.print(QUERY + OUTPUTS[sink], soft_wrap=True)
        real_time = f'    .trigger(realTime="{epoch_s} seconds").start()'
        micro_batch = "    .start()".ljust(len(real_time))
        if sink is SinkName.KAFKA:
            self.console.print(f"[dim]{micro_batch}  # micro-batch[/]", soft_wrap=True)
        self.console.print(f"[green]{real_time}  # Real-Time Mode[/]\n", soft_wrap=True)

    def phase(self, name: str) -> AbstractContextManager[None]:
        return working(name)

    @contextmanager
    def measuring(self, mode: str, seconds: int) -> Iterator[Callable[[LoadSnapshot], None]]:
        """Show each second's figures while the measurement runs."""
        begun = time.monotonic()
        history = self._history.setdefault(mode, [])
        if not self.console.is_terminal:
            yield self._printing(mode, seconds, history)
            return
        with Live(console=self.console, refresh_per_second=4, transient=True) as live:

            def show(snapshot: LoadSnapshot) -> None:
                history.append(snapshot)
                live.update(self._picture(mode, time.monotonic() - begun, seconds))

            yield show
        self.console.print(f"[green]✓[/] Measured {mode} [dim]({time.monotonic() - begun:.1f} s)[/]")

    def _printing(self, mode: str, seconds: int, history: list[LoadSnapshot]) -> Callable[[LoadSnapshot], None]:
        def show(snapshot: LoadSnapshot) -> None:
            history.append(snapshot)
            if len(history) % LINES_EVERY_S == 0:
                self.console.print(
                    f"{mode}: {min(len(history), seconds)} of {seconds} s, {snapshot.records}/s, "
                    f"p50 {snapshot.p50_ms:.1f} p99 {snapshot.p99_ms:.1f} p99.9 {snapshot.p999_ms:.1f} ms"
                )

        return show

    def _picture(self, mode: str, elapsed: float, seconds: int) -> Group:
        table = Table(title=f"Measuring {mode}: latency in ms, from the intended send time", title_justify="left")
        for column in ("", "rate/s", "p50 now", "p99 now", "p99.9 now", "p99 each second, log scale"):
            table.add_column(column, justify="left" if column in ("", "p99 each second, log scale") else "right")
        for name, history in self._history.items():
            if history:
                latest = history[-1]
                figures = [f"{value:.1f}" for value in (latest.p50_ms, latest.p99_ms, latest.p999_ms)]
                table.add_row(name, str(latest.records), *figures, sparkline([s.p99_ms for s in history[-40:]]))
        bar = ProgressBar(total=seconds, completed=min(elapsed, seconds), width=60)
        return Group(table, bar, Text(f"  {min(elapsed, seconds):.0f} of {seconds} s   Ctrl-C stops", style="dim"))


def sparkline(values_ms: list[float]) -> str:
    """One bar per value, from 1 ms (lowest) to 10 s (highest)."""
    steps = (math.log10(max(value, 1)) / 4 * len(BARS) for value in values_ms)
    return "".join(BARS[min(int(step), len(BARS) - 1)] for step in steps)
