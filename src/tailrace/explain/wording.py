"""What every form of the picture says, in the same words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tailrace.check.boundary_estimate import STATEFUL_PAUSE_MS, STATELESS_PAUSE_MS
from tailrace.check.description import QueryShape
from tailrace.check.formatting import duration_in_words
from tailrace.contract.query_description import Operator, Stage

SHUFFLE_IN_SHORT, SHUFFLE_WHERE = "streaming shuffle", "(in memory)"
SHUFFLE = f"{SHUFFLE_IN_SHORT} {SHUFFLE_WHERE}"
OURS = "Tailrace's own operator"
STATEFUL = "keeps state"
FLOWS = "rows flow"
NOTHING_KNOWN = "The stages of this query are unknown."

# From a query without state to one with it.
PAUSE = f"{STATELESS_PAUSE_MS} to {STATEFUL_PAUSE_MS} ms estimated"


def printable(shape: QueryShape) -> QueryShape:
    """Strip what would move a terminal's cursor, change the writing direction, or is not allowed in XML."""
    stages = (
        replace(
            stage,
            sources=tuple(map(_printable, stage.sources)),
            operators=tuple(
                replace(one, name=_printable(one.name), line=_printable(one.line) if one.line else None)
                for one in stage.operators
            ),
        )
        for stage in shape.stages
    )
    return replace(shape, stages=tuple(stages), sink=_printable(shape.sink) if shape.sink else None)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "�" for char in " ".join(text.split()))


def name(stage: Stage) -> str:
    return f"stage {stage.number}"


def slots(stage: Stage) -> str:
    return "? slots" if stage.tasks is None else counted(stage.tasks, "slot")


def reads(source: str) -> str:
    return f"reads {source}"


def writes_to(sink: str) -> str:
    return f"writes to {sink}"


def stages_named(numbers: Sequence[int]) -> str:
    """`stage 0`, or `stages 0, 1`."""
    return f"stage{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def marks_used(shape: QueryShape) -> tuple[bool, bool]:
    """Whether the picture has operators of Tailrace, and stateful ones."""
    operators = _operators(shape)
    return any(one.ours for one in operators), any(one.stateful for one in operators)


def most_marks(shape: QueryShape) -> int:
    """The largest number of marks of an operator."""
    return max((one.ours + one.stateful for one in _operators(shape)), default=0)


def _operators(shape: QueryShape) -> list[Operator]:
    return [one for stage in shape.stages for one in stage.operators]


def all_at_once(shape: QueryShape) -> str:
    """Which stages run at the same time, and the slots that they hold."""
    count = len(shape.stages)
    if count == 1:
        sentence = f"Its one stage holds {slots_in_all(shape)} for as long as the query runs."
    else:
        which = "Both" if count == 2 else f"All {count}"
        held = slots_in_all(shape)
        sentence = f"{which} stages run at the same time: {held}, for as long as the query runs."
    if shape.slots is None:
        sentence += " ? is the number of the source's partitions, which is unknown."
    return sentence


def slots_in_all(shape: QueryShape) -> str:
    """`8 + 20 = 28 task slots`"""
    return f"{shape.arithmetic} task slot{'' if shape.slots == 1 else 's'}"


def sum_of_slots(shape: QueryShape) -> str:
    """`28 task slots`"""
    return "? task slots" if shape.slots is None else counted(shape.slots, "task slot")


def epoch_heading(shape: QueryShape) -> str:
    every = f" ({_every(shape.epoch_ms)})" if shape.epoch_ms else ""
    return f"At the end of each epoch{every}"


def epoch_steps(shape: QueryShape) -> tuple[str, ...]:
    """The steps of an epoch boundary, in order."""
    state = ("State is committed: its changelog goes to the checkpoint.",) if shape.stateful else ()
    return (
        "Sources stop reading.",
        "Stages finish what is under way.",
        *state,
        "Offsets are committed.",
        "The next epoch is planned and launched.",
    )


def epoch_pause() -> str:
    return f"Nothing flows meanwhile ({PAUSE})."


def _every(milliseconds: int) -> str:
    """`every 5 minutes`, `every minute`"""
    words = duration_in_words(milliseconds)
    is_one_unit = len(words.split()) == 2
    return f"every {words.removeprefix('1 ') if is_one_unit else words}"
