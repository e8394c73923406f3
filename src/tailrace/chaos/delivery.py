"""What was sent against what came out: lost, duplicates, out of order, last records. Pure functions, no broker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from tailrace.chaos.expected import EXPECTED, Answer, Expected, Sent, Truth
from tailrace.chaos.records import Record
from tailrace.chaos.topics import Read
from tailrace.chaos.workloads import WORKLOADS, QueryName

EXAMPLES = 5
NOT_SAID = -1


class Promise(Enum):
    """What a sink promises of each row. Under both, the last record of each key is right."""

    AT_LEAST_ONCE = "at least once"
    EXACTLY_ONCE = "exactly once"

    @classmethod
    def of(cls, query: str) -> Promise:
        name = QueryName.parse(query)
        once = name.sink != "kafka" and WORKLOADS[name.workload].once
        return cls.EXACTLY_ONCE if once else cls.AT_LEAST_ONCE


@dataclass
class Delivery:
    """What one query delivered. A row is what the workload must write once: an answer to a record, or to an id."""

    sent: int
    due: int
    out: int
    lost: list[int] = field(default_factory=list)
    """Rows that never came out."""
    duplicates: list[int] = field(default_factory=list)
    """Rows that came out more than once, one entry for each surplus copy."""
    unknown: list[int] = field(default_factory=list)
    """Answers to records that were never sent."""
    out_of_order: list[int] | None = None
    """Rows that came for the first time after a later one of the same key and input partition; none if not promised."""
    wrong: list[int] = field(default_factory=list)
    """Rows with a wrong value."""
    regressions: int = 0
    """How often a key's count did not go up, or its maximum went down."""
    keys: int | None = None
    """Keys whose last record was compared with the truth."""
    wrong_keys: list[str] = field(default_factory=list)
    """Keys whose last record is not the truth."""
    timer_duplicates: int | None = None
    """How often a timer's row came again, which is no part of a promise; none without timers."""

    def broken(self, promise: Promise) -> list[str]:
        """What breaks the promise, in words; empty if it is kept."""
        found = [
            _described("lost", self.lost),
            _described("unknown", self.unknown),
            _described("with a wrong value", self.wrong),
            _described("keys with a wrong last record", self.wrong_keys),
        ]
        if promise is Promise.EXACTLY_ONCE:
            found += [
                _described("duplicates", self.duplicates),
                _described("out of order", self.out_of_order or []),
                f"{self.regressions} updates that went back" if self.regressions else "",
            ]
            # Duplicates are reported above; this is about any other difference in number.
            if not any(found) and self.out != self.due:
                found.append(f"{self.out} rows instead of {self.due}")
        return [text for text in found if text]


def _described(what: str, numbers: Sequence[int] | Sequence[str]) -> str:
    if not numbers:
        return ""
    examples = ", ".join(map(str, numbers[:EXAMPLES]))
    return f"{len(numbers)} {what}: {examples}{' …' if len(numbers) > EXAMPLES else ''}"


def compare(
    workload: str,
    sent: Sequence[Sent],
    answers: Sequence[Answer],
    *,
    final: Sequence[Answer] | None = None,
    coalesced: bool = False,
) -> Delivery:
    """Compare a query's answers with what was sent. Answers of one key must be in the order of the output.

    :param final: what the output holds at the end, if answers replace each other.
    :param coalesced: whether only the last of several updates of a key may have been written.
    """
    expected = EXPECTED[workload]
    asked = {each.record.number: each for each in sent}
    due = {row for each in sent for row in expected.rows(each.record)}
    delivery = Delivery(sent=len(sent), due=len(due), out=len(answers))
    times: Counter[int] = Counter()
    known: list[MatchedAnswer] = []
    by_time: Counter[str] = Counter()
    for answer in answers:
        timer = expected.by_time(answer)
        if timer is not None:
            by_time[timer] += 1
            delivery.timer_duplicates = by_time.total() - len(by_time)
            continue
        question = asked.get(answer.number)
        rows = expected.rows(question.record) if question else ()
        row = answer.fields.get(expected.row_field) if expected.row_field else next(iter(rows), None)
        if question is None or row not in rows:
            delivery.unknown.append(answer.number)
            continue
        times[row] += 1
        known.append(MatchedAnswer(answer, question, row, rows.index(row)))
        if not _is_right(expected, workload, answer, question.record):
            delivery.wrong.append(answer.number)
    delivery.out -= by_time.total()
    if workload in WORKLOADS and WORKLOADS[workload].compacted:
        # What is missing may have been compacted away; the last record of each key may not.
        delivery.due = delivery.out
    else:
        if coalesced:
            # What is missing may have been covered by a later update. The last one of each key may not.
            delivery.due = len(times)
        else:
            delivery.lost = sorted(due - times.keys())
        delivery.duplicates = [row for row, count in times.items() for _ in range(count - 1)]
    if expected.ordered:
        delivery.out_of_order = out_of_order(known)
    if expected.totals:
        _compare_totals(delivery, known, coalesced=coalesced)
    elif expected.rises or expected.falls:
        delivery.regressions = _regressions(expected, known)
    if expected.last is not None:
        _compare_last(delivery, expected.last(sent), answers if final is None else final)
    return delivery


@dataclass(frozen=True)
class MatchedAnswer:
    """An answer, the record that it answers, and which of the record's rows it is."""

    answer: Answer
    question: Sent
    row: int
    position: int
    """Among the rows of its record."""


def _is_right(expected: Expected, workload: str, answer: Answer, asked: Record) -> bool:
    # A user's query has keys of its own.
    right_key = workload == "yours" or answer.key == expected.key(asked)
    values = expected.values(asked)
    same = all(answer.fields.get(name) == value for name, value in values.items())
    return right_key and same and expected.possible(asked, answer.fields)


def rows_due(workload: str, sent: Sequence[Sent]) -> set[int]:
    """The rows that must have come before it makes sense to compare."""
    expected = EXPECTED.get(workload)
    if expected is None:
        return {each.record.number for each in sent}
    if workload in WORKLOADS and WORKLOADS[workload].compacted:
        newest = {(expected.key(each.record), each.partition): each.record.number for each in sent}
        return set(newest.values())
    return {row for each in sent for row in expected.rows(each.record)}


def out_of_order(known: Iterable[MatchedAnswer]) -> list[int]:
    """First answers only: a replay repeats rows in their order, which is a matter of duplicates."""
    newest: dict[tuple[str, int, int], int] = {}
    seen: set[int] = set()
    late = []
    for each in known:
        number = each.answer.number
        if each.row in seen:
            continue
        seen.add(each.row)
        # Rows of a record come from different readings of the input, which may pass each other.
        stream = (each.answer.key, each.question.partition, each.position)
        if number < newest.get(stream, -1):
            late.append(number)
        newest[stream] = max(number, newest.get(stream, -1))
    return late


def _compare_totals(delivery: Delivery, known: Iterable[MatchedAnswer], *, coalesced: bool) -> None:
    """Every count and sum must follow from one that came before it, unless that may have been covered."""
    last: dict[str, int] = {}
    # Partitions meet in another order after a restart, so one count may have had several sums.
    sums: dict[tuple[str, int], set[int]] = {}
    for each in known:
        answer = each.answer
        count, total = answer.fields.get("count", 0), answer.fields.get("sum", 0)
        before = {0} if count == 1 else sums.get((answer.key, count - 1), set())
        if not coalesced and total - each.question.record.amount not in before:
            delivery.wrong.append(answer.number)
        sums.setdefault((answer.key, count), set()).add(total)
        delivery.regressions += count <= last.get(answer.key, 0)
        last[answer.key] = count


def _regressions(expected: Expected, known: Iterable[MatchedAnswer]) -> int:
    """How often a maximum went down, or a minimum up."""
    last: dict[tuple[str, str], int] = {}
    signed = dict.fromkeys(expected.rises, 1) | dict.fromkeys(expected.falls, -1)
    count = 0
    for each in known:
        for name, sign in signed.items():
            value = sign * (each.answer.fields.get(name) or 0)
            count += value < last.get((each.answer.key, name), value)
            last[each.answer.key, name] = value
    return count


def _compare_last(delivery: Delivery, truth: Truth, answers: Iterable[Answer]) -> None:
    last = {answer.key: answer for answer in answers}

    def is_right(key: str) -> bool:
        found = last.get(key)
        if found is None:
            return False
        fields = {**found.fields, "number": found.number}
        return all(fields.get(name) in allowed for name, allowed in truth[key].items())

    delivery.keys = len(truth)
    delivery.wrong_keys = sorted(key for key in truth if not is_right(key))


def sent_of(reads: Iterable[Read], id_field: str | None = None) -> list[Sent]:
    """What lies in the input topic is what was sent. With `id_field` they are records of the user's own variant."""
    sent = [Sent(_record(read, id_field), read.partition, read.offset) for read in reads]
    return sorted(sent, key=lambda each: each.record.number)


def _record(read: Read, id_field: str | None) -> Record:
    if id_field is None:
        return Record.from_json(read.value)
    number = int(json.loads(read.value)[id_field])
    return Record(number, number, _text(read.key), 0)


def answers_of(reads: Iterable[Read], id_field: str = "number", by: str = "") -> list[Answer]:
    """An output record that does not say what it answers counts as unknown.

    :param by: only records of this one of several queries that write to the topic.
    """
    answers = []
    for read in reads:
        try:
            fields = json.loads(read.value)
            if by and fields.get("by", by) != by:
                continue
            answers.append(Answer(_text(read.key), int(fields[id_field]), fields))
        except (ValueError, KeyError, TypeError, AttributeError):
            answers.append(Answer(_text(read.key), NOT_SAID))
    return answers


def _text(key: bytes | None) -> str:
    return (key or b"").decode(errors="replace")
