"""The judges of workloads whose last record can be stale: mistakes of a sink are found, a right output passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.chaos.changes import Change, committed_offsets, compare_changes
from tailrace.chaos.delivery import Promise, answers_of, compare
from tailrace.chaos.expected import Answer, Sent
from tailrace.chaos.records import (
    KEYS,
    RUN_OF_A_KEY,
    SHORT_LIFE,
    is_last_of_short_life,
    level,
    record,
    short_lived_key,
)
from tailrace.chaos.topics import Read
from tailrace.chaos.workloads import WORKLOADS

COUNT = 10 * SHORT_LIFE
SENT = [Sent(record(number), number % 2, number // 2) for number in range(COUNT)]
Answers = list[Answer]


def extremes(numbers: list[int] | None = None, key_of: Callable[[int], int] = lambda number: number) -> Answers:
    levels: dict[str, list[int]] = {}
    answers = []
    for number in range(COUNT) if numbers is None else numbers:
        identity = key_of(number)
        found = levels.setdefault(short_lived_key(identity), [])
        found.append(level(identity))
        fields = {"max": max(found), "min": min(found), "id": record(number).id}
        answers.append(Answer(short_lived_key(identity), number, fields))
    return answers


def firsts() -> Answers:
    first: dict[str, int] = {}
    return [
        Answer(key, number, {"first": first.setdefault(key, number)})
        for number in range(COUNT)
        for key in [short_lived_key(number)]
    ]


def timers() -> Answers:
    """Each key is silent between its two runs."""
    answers = []
    for number in range(COUNT):
        key = short_lived_key(number)
        status = "gone" if is_last_of_short_life(number) else "reading"
        answers.append(Answer(key, number, {"status": status}))
        if number % RUN_OF_A_KEY == RUN_OF_A_KEY - 1 and status == "reading":
            answers.append(Answer(key, number, {"status": "silent", "due": number}))
    return answers


def two_shuffles() -> Answers:
    first_of_id = {record(number).id: number for number in reversed(range(COUNT))}
    return extremes(sorted(first_of_id.values()), lambda number: record(number).id)


def two_sources() -> Answers:
    return [
        replace(answer, fields={**answer.fields, "row": 2 * answer.number + side})
        for answer in extremes()
        for side in (0, 1)
    ]


def compacted() -> Answers:
    """Only the newest record of each key is left."""
    return list({short_lived_key(n): Answer(short_lived_key(n), n, {"level": level(n)}) for n in range(COUNT)}.values())


def compacted_extremes() -> Answers:
    return list({answer.key: answer for answer in extremes()}.values())


RIGHT: dict[str, Callable[[], Answers]] = {
    "extremes": extremes,
    "firsts": firsts,
    "timers": timers,
    "two-shuffles": two_shuffles,
    "two-sources": two_sources,
    "compacted": compacted,
    "compacted-extremes": compacted_extremes,
    "shared": extremes,
}
every_workload = pytest.mark.parametrize("workload", RIGHT)


def broken(workload: str, answers: Answers, sink: str = "tailrace-kafka") -> list[str]:
    return compare(workload, SENT, answers).broken(Promise.of(f"{workload}/{sink}"))


@every_workload
def test_the_right_output_passes(workload: str) -> None:
    delivery = compare(workload, SENT, RIGHT[workload]())
    assert delivery.broken(Promise.EXACTLY_ONCE) == []
    assert delivery.keys
    assert delivery.wrong_keys == []


@every_workload
def test_a_stale_last_record_is_found(workload: str) -> None:
    """An older record of the key is written once more, after the last one."""
    answers = RIGHT[workload]()
    if WORKLOADS[workload].compacted:
        # The older one has replaced the newer one.
        at = 7
        older = int(answers[at].number) - 2
        stale = replace(
            answers[at], number=older, fields={"level": level(older), "max": level(older), "min": level(older)}
        )
        answers[at] = stale
    else:
        stale = answers[0]
        answers.append(stale)
    delivery = compare(workload, SENT, answers)
    assert delivery.wrong_keys == [stale.key]
    assert broken(workload, answers), "whatever the sink promises else"
    assert broken(workload, answers, sink="kafka")


@pytest.mark.parametrize("workload", [name for name in RIGHT if not WORKLOADS[name].compacted])
def test_a_lost_row_is_found(workload: str) -> None:
    answers = RIGHT[workload]()
    gone = next(at for at, a in enumerate(answers) if at > 50 and a.fields.get("status") != "silent")
    row = answers.pop(gone)
    delivery = compare(workload, SENT, answers)
    expected = {"two-shuffles": row.fields.get("id"), "two-sources": row.fields.get("row")}.get(workload, row.number)
    assert delivery.lost == [expected]
    assert broken(workload, answers)


@pytest.mark.parametrize("workload", [name for name in RIGHT if not WORKLOADS[name].compacted])
def test_a_duplicate_is_found(workload: str) -> None:
    answers = RIGHT[workload]()
    answers.insert(1, answers[0])
    delivery = compare(workload, SENT, answers)
    assert len(delivery.duplicates) == 1
    assert bool(broken(workload, answers)) == WORKLOADS[workload].once


@pytest.mark.parametrize("workload", ["compacted", "compacted-extremes"])
def test_a_key_that_is_gone_from_a_compacted_topic_is_found(workload: str) -> None:
    answers = RIGHT[workload]()
    gone = answers.pop(3)
    assert compare(workload, SENT, answers).wrong_keys == [gone.key]


def test_a_wrong_order_is_found() -> None:
    answers = firsts()
    key = answers[0].key
    lane = [at for at, answer in enumerate(answers) if answer.key == key and answer.number % 2 == 0]
    answers[lane[0]], answers[lane[1]] = answers[lane[1]], answers[lane[0]]
    assert compare("firsts", SENT, answers).out_of_order == [0]


def test_a_maximum_that_goes_back_is_found() -> None:
    """A replay met the rows in another order; at the end all is right again."""
    last = {answer.key: answer for answer in extremes()}
    rest = [answer for answer in extremes() if answer is not last[answer.key]]
    lower = replace(rest[5], fields={**rest[5].fields, "max": level(rest[5].number)})
    delivery = compare("extremes", SENT, [*rest, lower, *last.values()])
    assert delivery.wrong_keys == []
    assert delivery.regressions or delivery.duplicates


def test_a_value_that_cannot_be_is_found() -> None:
    answers = extremes()
    answers[9] = replace(answers[9], fields={"max": level(answers[9].number) - 1, "min": 0})
    assert compare("extremes", SENT, answers).wrong == [answers[9].number]


def test_a_timer_that_fires_again_is_counted_but_promised_by_nobody() -> None:
    answers = timers()
    silent = next(answer for answer in answers if answer.fields["status"] == "silent")
    delivery = compare("timers", SENT, [silent, *answers])
    assert delivery.timer_duplicates == 1
    assert delivery.duplicates == []
    assert delivery.broken(Promise.EXACTLY_ONCE) == []


def test_a_silence_after_the_end_of_a_key_is_found() -> None:
    """What a timer does that fires again in a replay, when the record after it is dropped."""
    answers = timers()
    silent = next(answer for answer in answers if answer.fields["status"] == "silent")
    assert broken("timers", [*answers, silent]) == [f"1 keys with a wrong last record: {silent.key}"]


def test_two_queries_on_one_topic_are_told_apart() -> None:
    reads = [Read(0, b"k", b'{"number": 1, "by": "a"}'), Read(0, b"k", b'{"number": 2, "by": "b"}')]
    assert [answer.number for answer in answers_of(reads, by="a")] == [1]
    assert [answer.number for answer in answers_of(reads, by="b")] == [2]
    assert len(answers_of(reads)) == 2


class TestChanges:
    """A query whose code makes rows a and b of a record, then b and c."""

    FIRST = Change(0, "old", {})

    def rows(self, parts: str, numbers: range) -> Answers:
        return [Answer(short_lived_key(n), n, {"part": part}) for n in numbers for part in parts]

    def test_without_a_change(self) -> None:
        delivery = compare_changes(SENT, {"old": self.rows("ab", range(COUNT))}, [self.FIRST])
        assert delivery.broken(Promise.EXACTLY_ONCE) == []

    def test_new_rows_of_uncommitted_records_must_be_there(self) -> None:
        """The change came after 100 records were committed and 200 written."""
        changes = [self.FIRST, Change(1, "old", {0: 50, 1: 50})]
        before, after = self.rows("ab", range(200)), self.rows("bc", range(100, COUNT))
        right = compare_changes(SENT, {"old": before + after}, changes)
        assert right.broken(Promise.AT_LEAST_ONCE) == []
        dropped_by_count = compare_changes(SENT, {"old": before + self.rows("bc", range(200, COUNT))}, changes)
        assert dropped_by_count.lost == list(range(100, 200))

    def test_another_topic_must_hold_what_was_not_committed(self) -> None:
        changes = [self.FIRST, Change(0, "new", {0: 50, 1: 50})]
        old = self.rows("ab", range(200))
        right = compare_changes(SENT, {"old": old, "new": self.rows("ab", range(100, COUNT))}, changes)
        assert right.broken(Promise.EXACTLY_ONCE) in ([], [f"{2 * COUNT + 200} rows instead of {2 * COUNT}"])
        dropped = compare_changes(SENT, {"old": old, "new": self.rows("ab", range(200, COUNT))}, changes)
        assert set(dropped.lost) == set(range(100, 200))

    def test_a_change_that_was_taken_back(self) -> None:
        changes = [self.FIRST, Change(1, "old", {0: 50, 1: 50}), Change(0, "old", {0: 50, 1: 50})]
        delivery = compare_changes(SENT, {"old": self.rows("ab", range(COUNT))}, changes)
        assert delivery.broken(Promise.AT_LEAST_ONCE) == []

    def test_committed_offsets(self, tmp_path: Path) -> None:
        assert committed_offsets(tmp_path, "in") == {}
        for folder in ("commits", "offsets"):
            (tmp_path / folder).mkdir()
        (tmp_path / "commits" / "3").write_text('v1\n{"nextBatchWatermarkMs":0}')
        (tmp_path / "commits" / ".3.crc").touch()
        for number in (3, 4):
            offsets = f'v1\n{{"batchWatermarkMs":0}}\n{{"in":{{"0":{number}0,"1":7}}}}'
            (tmp_path / "offsets" / str(number)).write_text(offsets)
        assert committed_offsets(tmp_path, "in") == {0: 30, 1: 7}, "the fourth epoch was not committed"


def test_short_lived_keys_end() -> None:
    lives: dict[str, list[int]] = {}
    for number in range(COUNT):
        lives.setdefault(short_lived_key(number), []).append(number)
    assert len(lives) == KEYS * COUNT // SHORT_LIFE
    for numbers in lives.values():
        assert numbers[-1] - numbers[0] < SHORT_LIFE
        assert [is_last_of_short_life(number) for number in numbers].count(True) == 1
        assert is_last_of_short_life(numbers[-1])
        assert {number % 2 for number in numbers} == {0, 1}, "in both partitions"
    assert len({level(number) for number in range(SHORT_LIFE)}) > SHORT_LIFE // 2
