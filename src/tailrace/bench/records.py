"""The records of the workloads, and how their answers are recognized.

The load's processes import this file, so it must stay light.
"""

from __future__ import annotations

import base64
import json
import math
import random

TEXT_BYTES = 1 << 16
REPEATED = 5
"""Of so many records one has the id of an earlier one: 80 % are fresh."""


class Encoder:
    """JSON records of a fixed size.

    :param record_bytes: the size of a value.
    :param keys: the number of keys, taken in turn.
    :param streams: if two, each pair of records has one id and one key: the first is for the one topic, the second for
        the other.
    :param repeats: give every fifth record the id of an earlier one.
    """

    def __init__(self, record_bytes: int, keys: int, streams: int = 1, repeats: bool = False) -> None:
        self._record_bytes = record_bytes
        self._keys = keys
        self._streams = streams
        self._repeats = repeats
        dice = random.Random(19)  # noqa: S311 the same text in every run
        self._text = "".join(dice.choices("abcdefghijklmnopqrstuvwxyz ", k=TEXT_BYTES))

    def __call__(self, number: int, intended_ns: int) -> tuple[bytes, bytes]:
        identity = number // self._streams
        if self._repeats and not is_fresh(number):
            identity -= REPEATED - 2
        key = f"k{identity % self._keys}"
        record = {
            "number": number,
            "intended_ns": intended_ns,
            "key": key,
            "id": identity,
            "amount": amount_of(number),
            "text": "",
        }
        value = json.dumps(record, separators=(",", ":"))
        # The same text for all records of a key, but for its last letters: one of the workloads counts texts.
        start = identity % self._keys * 7919 % (TEXT_BYTES // 2)
        text = self._text[start : start + max(0, self._record_bytes - len(value))]
        return key.encode(), (value[:-2] + text + '"}').encode()


def amount_of(number: int) -> int:
    return number * 37 % 1000


def passes_filter(number: int) -> bool:
    """The stateless workload keeps these."""
    return amount_of(number) % 10 != 0


def is_fresh(number: int) -> bool:
    return number % REPEATED != REPEATED - 1


def completes_pair(number: int) -> bool:
    """Of two records with one id, the second is answered."""
    return number % 2 == 1


class OneByOne:
    """Each answer is a JSON object with the number and the time of its record; those of timers have none."""

    def __init__(self, rate: float) -> None:
        del rate

    def __call__(self, _key: bytes | None, value: bytes) -> list[tuple[int, int]]:
        answer = json.loads(value)
        return [] if answer.get("number") is None else [(int(answer["number"]), int(answer["intended_ns"]))]


class Encoded:
    """Each answer is its record in base64."""

    def __init__(self, rate: float) -> None:
        del rate

    def __call__(self, _key: bytes | None, value: bytes) -> list[tuple[int, int]]:
        record = json.loads(base64.b64decode(value))
        return [(int(record["number"]), int(record["intended_ns"]))]


class Counted:
    """Each answer says how many records of its key were counted, so it answers those not answered before.

    Usually that is one record. A micro-batch answers all records of a key in a batch together. A count that does not
    grow is a duplicate. A record that was not counted stays unanswered, and is lost.

    :param window_s: the count begins anew with each window of so many seconds.
    """

    def __init__(self, rate: float, keys: int, window_s: int | None = None) -> None:
        self._interval_ns = 1e9 / rate
        self._keys = keys
        self._window_ns = window_s * 10**9 if window_s else None
        self._answered: dict[tuple[int, int], int] = {}
        self._start_ns: int | None = None

    def __call__(self, _key: bytes | None, value: bytes) -> list[tuple[int, int]]:
        answer = json.loads(value)
        if answer.get("number") is None:
            return []
        newest, intended_ns, count = int(answer["number"]), int(answer["intended_ns"]), int(answer["count"])
        if self._start_ns is None:
            self._start_ns = intended_ns - int(newest * self._interval_ns)
        key, window = newest % self._keys, intended_ns // self._window_ns if self._window_ns else 0
        first = self._first(key, window)
        before = self._answered.get((key, window), 0)
        self._answered[(key, window)] = max(before, count)
        positions = range(before, count) if count > before else range(count - 1, count)
        numbers = [first + position * self._keys for position in positions]
        return [(number, intended_ns - round((newest - number) * self._interval_ns)) for number in numbers]

    def _first(self, key: int, window: int) -> int:
        """The first record of the key in the window."""
        if self._window_ns is None:
            return key
        assert self._start_ns is not None
        from_number = max(0, math.ceil((window * self._window_ns - self._start_ns) / self._interval_ns))
        return from_number + (key - from_number) % self._keys
