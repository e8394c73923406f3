"""A comparison of two results on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tailrace.bench.compare import Change, Comparison
from tailrace.bench.table import brief

STYLES = {Change.SLOWER: "red", Change.FASTER: "green", Change.UNDECIDED: "yellow"}


def show(comparison: Comparison, console: Console) -> None:
    shown = [one for change in STYLES for one in comparison.of(change)]
    if shown:
        table = Table(title="Beyond the spread of the rounds", title_justify="left")
        for name in ("workload", "system", "rate", "figure", "old", "new", ""):
            table.add_column(name, justify="right" if name in ("rate", "old", "new") else "left")
        for one in shown:
            change = f"[{STYLES[one.change]}]{one.change}[/] [dim]{escape(one.reason)}[/]"
            values = brief(one.before), brief(one.after)
            table.add_row(one.workload, one.system, str(one.rate), one.figure, *values, change)
        console.print(table)
    slower, same = comparison.of(Change.SLOWER), comparison.of(Change.SAME)
    console.print(f"{len(slower)} figures got slower, {len(same)} stayed the same.")
    for note in comparison.notes:
        console.print(f"[dim]{escape(note)}[/]", soft_wrap=True)
