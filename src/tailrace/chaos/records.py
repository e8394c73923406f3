"""The records that are sent. Each is a function of its number, so the expected output can be computed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

KEYS = 20
# Records of one key come in runs, spread over the partitions: after a restart they meet in another order.
RUN_OF_A_KEY = 4
# Of so many records the last has the id of an earlier one, near enough for the same epoch or a thousand records back.
# Neither distance is a multiple of 2, 3 or 4, so that the two are in different partitions.
REPEAT_EVERY = 10
NEAR, FAR = 5, 1001


@dataclass(frozen=True)
class Record:
    """One input record. `number` is its own; `id` is what duplicates are recognised by."""

    number: int
    id: int
    key: str
    amount: int

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, value: bytes) -> Record:
        return cls(**json.loads(value))


def record(number: int) -> Record:
    return Record(number, _id(number), key_of(number), number % 97 + 1)


def key_of(number: int) -> str:
    return f"k{number // RUN_OF_A_KEY % KEYS}"


def _id(number: int) -> int:
    if number % REPEAT_EVERY != REPEAT_EVERY - 1:
        return number
    far = number % (2 * REPEAT_EVERY) > REPEAT_EVERY and number >= FAR
    return number - (FAR if far else NEAR)
