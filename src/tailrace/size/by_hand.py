"""A query's stages from figures that the user gives."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.check.description import QueryShape
from tailrace.contract.query_description import Operator, Stage
from tailrace.size.load import bad_size


def parse_stages(text: str) -> QueryShape:
    """`8,20,20`: the partitions of the source, then those of each shuffle."""
    try:
        return shape_by_hand([int(part) for part in text.split(",")])
    except ValueError:
        raise bad_size(
            f"'{text}' is not a list of stages.", "give the tasks of each from the source on: --stages 8,20."
        ) from None


def shape_by_hand(tasks: Sequence[int], *, source: str = "source") -> QueryShape:
    """A chain of stages. A stage behind a shuffle is assumed to keep state."""
    if not tasks or min(tasks) < 1:
        raise bad_size("a stage has at least one task.", "give the tasks of each from the source on: --stages 8,20.")
    reads = Stage(number=0, inputs=(), sources=(source,), operators=(), tasks=tasks[0])
    keeps_state = Operator("stateful operator", stateful=True)
    shuffled = [
        Stage(number=number, inputs=(number - 1,), sources=(), operators=(keeps_state,), tasks=count)
        for number, count in enumerate(tasks[1:], start=1)
    ]
    return QueryShape((reads, *shuffled))
