"""Write docs/reference/operators.md from the plugin's support registry (`make docs`)."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from tailrace._spark.support import Support, support_registry

PAGE = Path(__file__).parents[1] / "docs/reference/operators.md"

INTRODUCTION = """\
<!-- Generated from the plugin's support registry by `make docs`. Change jvm/src/tailrace/support/ instead. -->

# What runs in Real-Time Mode

The same DataFrame, SQL and Python code as in micro-batch. What is refused is refused by `start()`, before any row is
read and with every reason at once; only what the planner decides (how a table is joined) is found when the first epoch
is planned. Anything that is not on this page is refused as well. The static side of a join may contain anything.

✓ runs, row by row · ✗ is refused
"""


def page(registry: list[Support]) -> str:
    shown = [row for row in registry if row.group]
    order = list(dict.fromkeys(row.group for row in shown))
    parts = [INTRODUCTION]
    for group, rows in groupby(sorted(shown, key=lambda row: order.index(row.group)), key=lambda row: row.group):
        parts.append(f"## {group}\n")
        parts.append("| | operation | |\n|---|---|---|")
        for row in sorted(rows, key=lambda row: not row.supported):
            remark = row.note if row.supported else f"{row.reason} Instead: {row.remedy}"
            parts.append(f"| {'✓' if row.supported else '✗'} | {row.name} | {remark} |")
        parts[-1] += "\n"
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(support_registry()), encoding="utf-8")
    print(f"written: {PAGE}")
