"""The records that are sent. Each is a function of its number, so the expected output can be computed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

KEYS = 20
# Records of one key come in runs, spread over the partitions: after a restart they meet in another order.
RUN_OF_A_KEY = 4
# Of so many records the last has the id of an earlier one, near enough for the same epoch or a thousand records back.
# Neither distance is a multiple of 2, 3 or 4, so the two are in different partitions.
REPEAT_EVERY = 10
NEAR, FAR = 5, 1001
# A short-lived key occurs only among so many records, at the usual rate for less than two seconds. What a fault makes
# of its last record stays visible; a key that continues would get a right record soon after a wrong one.
SHORT_LIFE = 160
# How far a level may be ahead of its number: within so many records, chance decides which is the highest.
LEVEL_NOISE = 401


@dataclass(frozen=True)
class Record:
    """One input record. `number` is its own; `id` is what duplicates are recognized by."""

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


def short_lived_key(number: int) -> str:
    return f"{key_of(number)}-{number // SHORT_LIFE}"


def is_last_of_short_life(number: int) -> bool:
    """Whether no later record has its short-lived key."""
    return number % SHORT_LIFE >= SHORT_LIFE - KEYS * RUN_OF_A_KEY and number % RUN_OF_A_KEY == RUN_OF_A_KEY - 1


def level(number: int) -> int:
    """A value that rises with the number, but not from each record to the next."""
    return number + number * 7919 % LEVEL_NOISE
