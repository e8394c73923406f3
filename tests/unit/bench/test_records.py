"""Records and their answers: what counts as answered, lost and duplicate."""

from __future__ import annotations

import base64
import json

import pytest

from tailrace.bench.jobs.vendor_b import LONGEST
from tailrace.bench.records import Counted, Encoded, Encoder, OneByOne, completes_pair, is_fresh, passes_filter

RATE = 100.0
INTERVAL_NS = 10_000_000
START_NS = 1_800_000_000_000_000_123


def intended(number: int) -> int:
    return START_NS + number * INTERVAL_NS


@pytest.mark.parametrize("size", [200, 1200])
def test_a_record_has_the_size_that_was_asked_for(size: int) -> None:
    encode = Encoder(record_bytes=size, keys=10)
    for number in (0, 7, 123_456):
        key, value = encode(number, intended(number))
        assert len(value) == size
        record = json.loads(value)
        assert (record["number"], record["intended_ns"]) == (number, intended(number))
        assert record["key"].encode() == key


def test_the_texts_of_a_key_are_alike() -> None:
    """Up to where the vendor's query B cuts them off, also when numbers get longer."""
    encode = Encoder(record_bytes=1200, keys=10)
    texts = {key: set[str]() for key in range(10)}
    for number in (*range(100), *range(1_000_000, 1_000_100)):
        texts[number % 10].add(json.loads(encode(number, START_NS + number)[1])["text"][:LONGEST])
    assert [len(found) for found in texts.values()] == [1] * 10
    assert all(len(text) == LONGEST for found in texts.values() for text in found)
    assert len(set.union(*texts.values())) == 10


def test_the_filter_is_that_of_the_jobs() -> None:
    encode = Encoder(record_bytes=200, keys=10)
    amounts = {number: json.loads(encode(number, 0)[1])["amount"] for number in range(1000)}
    assert {number for number, amount in amounts.items() if amount % 10 != 0} == set(filter(passes_filter, amounts))
    assert 0 < sum(map(passes_filter, amounts)) < 1000


def test_two_streams_share_an_id() -> None:
    encode = Encoder(record_bytes=200, keys=10**9, streams=2)
    ids = [json.loads(encode(number, 0)[1])["id"] for number in range(6)]
    assert ids == [0, 0, 1, 1, 2, 2]
    assert [completes_pair(number) for number in range(4)] == [False, True, False, True]


def test_a_fifth_repeats_an_id() -> None:
    encode = Encoder(record_bytes=200, keys=10**9, repeats=True)
    seen: set[int] = set()
    for number in range(1000):
        identity = json.loads(encode(number, 0)[1])["id"]
        assert (identity not in seen) == is_fresh(number)
        seen.add(identity)
    assert len(seen) == 800


def test_one_by_one_and_encoded() -> None:
    _, value = Encoder(record_bytes=200, keys=10)(5, intended(5))
    assert OneByOne(RATE)(None, value) == [(5, intended(5))]
    assert Encoded(RATE)(None, base64.b64encode(value)) == [(5, intended(5))]
    assert OneByOne(RATE)(None, b'{"key": "k1", "timer": true}') == []


def answer(number: int, count: int) -> bytes:
    return json.dumps({"number": number, "intended_ns": intended(number), "count": count}).encode()


class TestCounted:
    def test_each_record_is_answered_by_its_own_count(self) -> None:
        decode = Counted(RATE, keys=10)
        for position, number in enumerate((3, 13, 23)):
            assert decode(None, answer(number, position + 1)) == [(number, intended(number))]

    def test_a_batch_answers_all_records_of_a_key_at_once(self) -> None:
        decode = Counted(RATE, keys=10)
        assert decode(None, answer(3, 1)) == [(3, intended(3))]
        assert decode(None, answer(33, 4)) == [(number, intended(number)) for number in (13, 23, 33)]

    def test_a_count_that_does_not_grow_is_a_duplicate(self) -> None:
        decode = Counted(RATE, keys=10)
        decode(None, answer(13, 2))
        assert decode(None, answer(13, 2)) == [(13, intended(13))]
        assert decode(None, answer(3, 1)) == [(3, intended(3))]

    def test_a_record_that_was_not_counted_stays_unanswered(self) -> None:
        decode = Counted(RATE, keys=10)
        decode(None, answer(3, 1))
        # The engine dropped 13: at 23 it has counted two.
        assert [number for number, _ in decode(None, answer(23, 2))] == [13]
        # So the last record of the key is never answered.
        assert [number for number, _ in decode(None, answer(33, 3))] == [23]

    def test_a_window_counts_anew(self) -> None:
        decode = Counted(RATE, keys=10, window_s=60)
        window_ns = 60 * 10**9
        boundary = next(n for n in range(10_000) if intended(n) // window_ns != intended(0) // window_ns)
        first = next(n for n in range(boundary, boundary + 10) if n % 10 == 3)
        assert decode(None, answer(3, 1)) == [(3, intended(3))]
        assert decode(None, answer(first, 1)) == [(first, intended(first))]
        assert [number for number, _ in decode(None, answer(first + 20, 3))] == [first + 10, first + 20]
