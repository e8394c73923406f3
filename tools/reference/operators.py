"""`docs/reference/operators.md`: what the plugin's support registry admits and refuses."""

from __future__ import annotations

from itertools import groupby

from tailrace._spark.support import support_registry
from tailrace.contract.support import SupportEntry

INTRODUCTION = """\
<!-- Generated from the plugin's support registry by `make docs`. Change jvm/src/tailrace/support/ instead. -->

# What runs in Real-Time Mode

The same DataFrame, SQL and Python code as in micro-batch. `start()` refuses an unsupported query before it reads a row,
and lists every reason at once. Only what the planner decides, such as how a table is joined, is found when the first
epoch is planned. Anything that is not on this page is refused. The static side of a join may contain anything.

✓ runs row by row · ⇄ and its [epochs overlap](../operate/epoch-boundaries.md#overlapping-epochs), if those of the whole
query do · ✗ is refused
"""


def page() -> str:
    return render(support_registry())


def render(registry: list[SupportEntry]) -> str:
    shown = [row for row in registry if row.group]
    order = list(dict.fromkeys(row.group for row in shown))
    parts = [INTRODUCTION]
    for group, rows in groupby(sorted(shown, key=lambda row: order.index(row.group)), key=lambda row: row.group):
        parts.append(f"## {group}\n")
        parts.append("| | operation | |\n|---|---|---|")
        for row in sorted(rows, key=lambda row: not row.supported):
            remark = row.note if row.supported else f"{row.reason} Instead: {row.fix}"
            mark = "✗" if not row.supported else "✓ ⇄" if row.overlaps else "✓"
            parts.append(f"| {mark} | {row.name} | {remark} |")
        parts[-1] += "\n"
    return "\n".join(parts).rstrip() + "\n"
