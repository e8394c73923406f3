"""A user's output against two reference runs of the same query. Pure functions.

Only the query knows what is right, so its own output without a fault is the reference: in micro-batch, once as the
input lies there, and once with its partitions in another order and in smaller batches. What differs between the two is
left to chance or to the clock and is not compared. What is the same in both must be the same in the output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tailrace.chaos.delivery import Delivery, MatchedAnswer, out_of_order
from tailrace.chaos.expected import Answer, Sent


@dataclass(frozen=True)
class Compared:
    """What could be compared."""

    rows: int
    keys: int
    order: bool

    def __str__(self) -> str:
        if not self.rows and not self.keys:
            return "nothing was compared: the two reference runs agree in nothing"
        parts = [f"the values of {self.rows:,} rows"] if self.rows else []
        parts += [f"the last records of {self.keys:,} keys"] if self.keys else []
        parts += ["the order of each key and input partition"] if self.order else []
        return f"compared with two reference runs: {', '.join(parts)}"


def compare_with_references(
    delivery: Delivery,
    sent: Sequence[Sent],
    answers: Sequence[Answer],
    references: Sequence[Sequence[Answer]],
    id_field: str,
) -> Compared:
    """Add to the delivery what differs from both references.

    A query that answers every record in both is taken to work record by record: the values of each row are compared,
    and a key may end with the newest record of any input partition. Of any other, such as an aggregation, micro-batch
    has fewer updates than Real-Time Mode: only the last record of each key is compared, without the record's number.
    """
    asked = {each.record.number: each for each in sent}
    if all({answer.number for answer in reference} >= asked.keys() for reference in references):
        return _compare_rows(delivery, asked, answers, references)
    return _compare_last(delivery, answers, references, id_field)


def _compare_rows(
    delivery: Delivery, asked: dict[int, Sent], answers: Sequence[Answer], references: Sequence[Sequence[Answer]]
) -> Compared:
    agreed = _agreed(references, lambda answer: answer.number)
    known = [
        MatchedAnswer(answer, asked[answer.number], answer.number, 0) for answer in answers if answer.number in asked
    ]
    rows = {each.row for each in known if agreed.get(each.row)}
    delivery.wrong += sorted({each.row for each in known if not _has(each.answer, agreed.get(each.row, {}))})
    is_ordered = all(
        not out_of_order(MatchedAnswer(a, asked[a.number], a.number, 0) for a in reference if a.number in asked)
        for reference in references
    )
    if is_ordered:
        delivery.out_of_order = out_of_order(known)
    newest: dict[tuple[str, int], int] = {}
    for answer in references[0]:
        if answer.number in asked:
            stream = (answer.key, asked[answer.number].partition)
            newest[stream] = max(answer.number, newest.get(stream, -1))
    allowed: dict[str, set[int]] = {}
    for (key, _), number in newest.items():
        allowed.setdefault(key, set()).add(number)
    last = {answer.key: answer.number for answer in answers}
    if is_ordered:
        delivery.keys = len(allowed)
        delivery.wrong_keys = sorted(key for key, numbers in allowed.items() if last.get(key) not in numbers)
    return Compared(len(rows), delivery.keys or 0, is_ordered)


def _compare_last(
    delivery: Delivery, answers: Sequence[Answer], references: Sequence[Sequence[Answer]], id_field: str
) -> Compared:
    agreed = {
        key: {name: value for name, value in fields.items() if name != id_field}
        for key, fields in _agreed(references, lambda answer: answer.key).items()
    }
    agreed = {key: fields for key, fields in agreed.items() if fields}
    last = {answer.key: answer for answer in answers}
    delivery.keys = len(agreed)
    delivery.wrong_keys = sorted(
        key for key, fields in agreed.items() if key not in last or not _has(last[key], fields)
    )
    return Compared(0, len(agreed), order=False)


def _agreed(references: Sequence[Sequence[Answer]], identity: Callable[[Answer], Any]) -> dict[Any, dict[str, Any]]:
    """For each row or key, the fields of its last answer that are the same in all references."""
    first, *others = ({identity(answer): answer.fields for answer in reference} for reference in references)
    return {
        name: {
            field: value
            for field, value in fields.items()
            if all(field in other[name] and other[name][field] == value for other in others)
        }
        for name, fields in first.items()
        if all(name in other for other in others)
    }


def _has(answer: Answer, fields: dict[str, Any]) -> bool:
    return all(name in answer.fields and answer.fields[name] == value for name, value in fields.items())
