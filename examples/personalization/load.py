"""Made-up visits, and a visitor who looks whether the offers have noticed them."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from service import OFFERS

USERS = 100
AT_ONCE = 100


def user_of(number: int) -> str:
    return f"user-{number % USERS}"


def item_of(number: int) -> str:
    return random.Random(number).choice(list(OFFERS))


def encode(number: int, intended_ns: int) -> tuple[bytes, bytes]:
    """As a Kafka record with the user as its key, so the events of a user stay in order."""
    user, item = user_of(number), item_of(number)
    event = {"event": number, "at_ms": intended_ns // 1_000_000, "user": user, "item": item, "category": OFFERS[item]}
    return user.encode(), json.dumps(event).encode()


class Visitor:
    """Asks the service for the offers of the user whose event has waited longest, until they have noticed it."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc)
        self.first_missing = list(range(USERS))
        """For each user, the first event that the offers have not noticed."""

    def read(self) -> Iterator[int]:
        for _ in range(AT_ONCE):
            waiting = min(self.first_missing)
            answer = self.ask(user_of(waiting))
            if answer["event"] < waiting:
                return
            if answer["events"] != answer["event"] // USERS + 1:
                raise RuntimeError(f"an event of {user_of(waiting)} was counted twice or not at all: {answer}")
            yield from range(waiting, answer["event"] + 1, USERS)
            self.first_missing[waiting % USERS] = answer["event"] + USERS

    def ask(self, user: str) -> dict[str, Any]:
        self.connection.request("GET", f"/offers/{user}")
        answer: dict[str, Any] = json.loads(self.connection.getresponse().read())
        return answer

    def close(self) -> None:
        self.connection.close()
