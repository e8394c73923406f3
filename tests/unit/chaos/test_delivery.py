"""Lost, duplicated, out-of-order, unknown and wrong rows are found, row by row."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tailrace.chaos.delivery import Delivery, Promise, answers_of, compare, sent_of
from tailrace.chaos.expected import Answer, Sent
from tailrace.chaos.records import FAR, KEYS, NEAR, REPEAT_EVERY, record
from tailrace.chaos.topics import Read
from tailrace.chaos.workloads import PARTNER, doubled, passes, scored

SENT = [Sent(record(number), number % 2) for number in range(2500)]
Answers = list[Answer]


def stateless() -> Answers:
    rows = (each.record for each in SENT if passes(each.record.amount))
    return [Answer(row.key, row.number, {"id": row.id, "doubled": doubled(row.amount)}) for row in rows]


def python() -> Answers:
    rows = (each.record for each in SENT)
    return [Answer(row.key, row.number, {"id": row.id, "score": scored(row.amount)}) for row in rows]


def aggregation(sent: list[Sent] | None = None) -> Answers:
    totals: dict[str, tuple[int, int]] = {}
    answers = []
    for each in sent or SENT:
        count, total = totals.get(each.record.key, (0, 0))
        count, total = count + 1, total + each.record.amount
        totals[each.record.key] = (count, total)
        answers.append(Answer(each.record.key, each.record.number, {"count": count, "sum": total}))
    return answers


def dedup() -> Answers:
    firsts = {each.record.id: each.record for each in reversed(SENT)}
    return [Answer(row.key, row.number, {"id": row.id}) for row in sorted(firsts.values(), key=lambda row: row.number)]


def join() -> Answers:
    rows = (each.record for each in SENT[PARTNER:])
    return [
        Answer(row.key, row.number, {"partner": row.number - PARTNER, "sum": row.amount + partner.record.amount})
        for row, partner in zip(rows, SENT, strict=False)
    ]


RIGHT: dict[str, Callable[[], Answers]] = {
    "stateless": stateless,
    "python": python,
    "aggregation": aggregation,
    "dedup": dedup,
    "processor": aggregation,
    "session": aggregation,
    "join": join,
}
every_workload = pytest.mark.parametrize("workload", RIGHT)


def delivery_of(workload: str, answers: Answers) -> Delivery:
    return compare(workload, SENT, answers)


@every_workload
def test_the_right_answers_balance(workload: str) -> None:
    delivery = delivery_of(workload, RIGHT[workload]())
    assert delivery.broken(Promise.EXACTLY_ONCE) == []
    assert delivery.out == delivery.due
    assert (delivery.due == delivery.sent) == (workload in ("python", "aggregation", "processor", "session"))


@every_workload
@pytest.mark.parametrize("place", [0, 700, -1])
def test_one_lost_row_is_found(workload: str, place: int) -> None:
    answers = RIGHT[workload]()
    gone = answers.pop(place)
    delivery = delivery_of(workload, answers)
    assert delivery.lost == [gone.fields["id"] if workload == "dedup" else gone.number]
    assert delivery.broken(Promise.AT_LEAST_ONCE)


@every_workload
def test_one_doubled_row_is_found(workload: str) -> None:
    answers = RIGHT[workload]()
    answers.insert(701, answers[700])
    delivery = delivery_of(workload, answers)
    assert delivery.lost == []
    assert len(delivery.duplicates) == 1
    assert delivery.broken(Promise.EXACTLY_ONCE)
    assert delivery.broken(Promise.AT_LEAST_ONCE) == [], "it does not promise more"


@every_workload
def test_an_answer_to_nothing_is_found(workload: str) -> None:
    delivery = delivery_of(workload, [*RIGHT[workload](), Answer("k0", 99_999)])
    assert delivery.unknown == [99_999]
    assert delivery.broken(Promise.AT_LEAST_ONCE)


def test_a_row_that_the_filter_should_have_stopped_is_unknown() -> None:
    stopped = next(each.record for each in SENT if not passes(each.record.amount))
    assert delivery_of("stateless", [*stateless(), Answer(stopped.key, stopped.number)]).unknown == [stopped.number]


@pytest.mark.parametrize("workload", ["stateless", "python", "join"])
def test_a_changed_value_is_found(workload: str) -> None:
    answers = RIGHT[workload]()
    name = next(field for field in answers[5].fields if field != "id")
    answers[5] = replace(answers[5], fields={**answers[5].fields, name: -1})
    assert delivery_of(workload, answers).wrong == [answers[5].number]


@every_workload
def test_a_foreign_key_is_found(workload: str) -> None:
    answers = RIGHT[workload]()
    answers[5] = replace(answers[5], key="another")
    assert answers[5].number in delivery_of(workload, answers).wrong


class TestOrder:
    def test_two_rows_of_one_key_and_partition_in_the_wrong_order(self) -> None:
        answers = python()
        lane = [at for at, answer in enumerate(answers) if answer.key == "k3" and answer.number % 2 == 0]
        first, second = lane[2:4]
        answers[first], answers[second] = answers[second], answers[first]
        delivery = delivery_of("python", answers)
        assert delivery.out_of_order == [lane[2]]
        assert delivery.broken(Promise.EXACTLY_ONCE)

    def test_rows_of_one_key_but_of_different_partitions_may_pass_each_other(self) -> None:
        answers = python()
        answers[0], answers[1] = answers[1], answers[0]
        assert delivery_of("python", answers).out_of_order == []

    def test_a_replay_is_no_disorder(self) -> None:
        answers = python()
        delivery = delivery_of("python", answers[:500] + answers[300:])
        assert delivery.out_of_order == []
        assert len(delivery.duplicates) == 200

    def test_none_is_promised_after_deduplication(self) -> None:
        assert delivery_of("dedup", dedup()).out_of_order is None


class TestTotals:
    def test_a_changed_sum_is_found(self) -> None:
        answers = aggregation()
        changed = replace(answers[700], fields={**answers[700].fields, "sum": answers[700].fields["sum"] + 1})
        delivery = delivery_of("aggregation", [*answers[:700], changed, *answers[701:]])
        assert changed.number in delivery.wrong
        assert delivery.wrong_keys == [], "its last value is right all the same"

    def test_a_changed_last_value_is_found(self) -> None:
        answers = aggregation()
        last = answers[-1]
        delivery = delivery_of(
            "aggregation", [*answers[:-1], replace(last, fields={"count": last.fields["count"], "sum": 0})]
        )
        assert delivery.wrong_keys == [last.key]
        assert delivery.broken(Promise.AT_LEAST_ONCE)

    def test_a_record_counted_twice_is_found_though_every_number_is_there(self) -> None:
        """As state that was committed but not rolled back would: all later counts are one too high."""
        answers = aggregation()
        key = answers[700].key
        shifted = [
            replace(a, fields={"count": a.fields["count"] + 1, "sum": a.fields["sum"] + 5})
            if a.key == key and at >= 700
            else a
            for at, a in enumerate(answers)
        ]
        delivery = delivery_of("aggregation", shifted)
        assert (delivery.lost, delivery.duplicates, delivery.unknown) == ([], [], [])
        assert delivery.wrong
        assert delivery.wrong_keys == [key]

    def test_a_replay_steps_back_and_may_meet_in_another_order(self) -> None:
        other_order = [*SENT[:300], *(SENT[at ^ 1] for at in range(300, len(SENT)))]
        delivery = delivery_of("aggregation", aggregation()[:500] + aggregation(other_order)[300:])
        assert delivery.broken(Promise.AT_LEAST_ONCE) == []
        assert delivery.regressions == KEYS
        assert delivery.broken(Promise.EXACTLY_ONCE)

    def test_suppressing_by_position_alone_is_found(self) -> None:
        """Rows that are in the output are dropped from the replay, in which the partitions met in another order."""
        other_order = [*SENT[:300], *(SENT[at ^ 1] for at in range(300, len(SENT)))]
        written = aggregation()[:501]
        there = {answer.number for answer in written}
        replayed = [answer for answer in aggregation(other_order)[300:] if answer.number not in there]
        delivery = delivery_of("aggregation", written + replayed)
        assert (delivery.lost, delivery.duplicates) == ([], [])
        assert delivery.regressions
        assert delivery.broken(Promise.EXACTLY_ONCE)


class TestReading:
    def test_input_records_are_read_as_they_were_sent(self) -> None:
        reads = [Read(number % 2, None, record(number).to_json()) for number in (3, 1, 2)]
        assert sent_of(reads) == [replace(each, offset=0) for each in SENT[1:4]]

    def test_a_users_own_form(self) -> None:
        read = Read(0, b"card", json.dumps({"payment": "17", "amount": 3}).encode())
        assert sent_of([read], "payment")[0].record.number == 17
        assert answers_of([read], "payment") == [Answer("card", 17, {"payment": "17", "amount": 3})]

    @pytest.mark.parametrize("value", [b"", b"not json", b"{}", b"[]", b'{"number": null}'])
    def test_what_cannot_be_read_is_unknown(self, value: bytes) -> None:
        assert compare("yours", SENT[:0], answers_of([Read(0, None, value)])).unknown == [-1]


def test_ids_are_repeated_in_another_partition() -> None:
    repeated = [each for each in (record(number) for number in range(20 * FAR)) if each.id != each.number]
    assert len(repeated) == 20 * FAR // REPEAT_EVERY
    assert {each.number - each.id for each in repeated} == {NEAR, FAR}
    for partitions in (2, 3, 4):
        assert all(each.number % partitions != each.id % partitions for each in repeated)


def test_every_key_is_in_every_partition() -> None:
    for partitions in (2, 3, 4):
        lanes = {(each.record.key, each.record.number % partitions) for each in SENT}
        assert len(lanes) == KEYS * partitions


def coalesced() -> Answers:
    """Of two updates of a key that follow each other, only the second; the last of each key stays."""
    answers = aggregation()
    last = {answer.key: answer for answer in answers}
    return [answer for answer in answers if answer.fields["count"] % 2 == 0 or answer is last[answer.key]]


def test_updates_that_a_later_one_of_the_batch_covers_are_not_lost() -> None:
    answers = coalesced()
    final = list({answer.key: answer for answer in answers}.values())
    delivery = compare("aggregation", SENT, answers, final=final, coalesced=True)
    assert delivery.broken(Promise.EXACTLY_ONCE) == []
    assert delivery.keys == KEYS
    assert compare("aggregation", SENT, answers).lost


def test_of_coalesced_updates_each_comes_once_and_none_goes_back() -> None:
    answers = coalesced()
    repeated = compare("aggregation", SENT, [*answers[:50], answers[49], *answers[50:]], coalesced=True)
    assert len(repeated.duplicates) == 1
    assert repeated.regressions == 1


def test_the_last_record_is_what_the_store_holds() -> None:
    answers = aggregation()
    held = {answer.key: answer for answer in answers} | {"k3": answers[12]}
    assert compare("aggregation", SENT, answers, final=list(held.values())).wrong_keys == ["k3"]
    assert compare("aggregation", SENT, answers, final=[]).wrong_keys == sorted(held)
