"""Made-up payments, and a reader of the decisions."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

CARDS = 5_000
# Every 40th payment begins a burst of five on a stolen card.
BURST_EVERY, BURST = 40, 5


def is_stolen(number: int) -> bool:
    return number % BURST_EVERY < BURST


def payment(number: int) -> dict[str, Any]:
    """The payment with this number, the same in every run."""
    dice = random.Random(number)
    if is_stolen(number):
        card, amount = f"stolen-{number // BURST_EVERY}", dice.uniform(500, 900)
    else:
        card, amount = f"card-{dice.randrange(CARDS)}", dice.uniform(5, 90)
    return {"payment": number, "card": card, "amount": round(amount, 2), "abroad": is_stolen(number)}


def encode(number: int, intended_ns: int) -> tuple[bytes, bytes]:
    """As a Kafka record with the card as its key, so the payments of a card stay in order."""
    made = payment(number)
    return made["card"].encode(), json.dumps({**made, "at_ms": intended_ns // 1_000_000}).encode()


def connect() -> psycopg.Connection:
    """As a service would; psycopg has no parameter for a file that holds only the password."""
    address = urlsplit(os.environ["POSTGRES_URL"].removeprefix("jdbc:"))
    password = Path(os.environ["POSTGRES_PASSWORD_FILE"]).read_text(encoding="utf-8").strip()
    return psycopg.connect(
        host=address.hostname,
        port=address.port,
        dbname=address.path[1:],
        user=os.environ["POSTGRES_USER"],
        password=password,
        autocommit=True,
    )


class DecisionReader:
    """Asks the table for new decisions all the time."""

    def __init__(self) -> None:
        self.connection = connect()
        self.seen: set[int] = set()
        self.first_missing = 0

    def read(self) -> list[int]:
        query = "SELECT payment FROM decisions WHERE payment >= %s"
        new = {number for (number,) in self.connection.execute(query, (self.first_missing,))} - self.seen
        self.seen |= new
        while self.first_missing in self.seen:
            self.seen.remove(self.first_missing)
            self.first_missing += 1
        return sorted(new)

    def close(self) -> None:
        self.connection.close()
