"""Made-up scores, and a reader of the leaderboard."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator

from page import connect

PLAYERS = 50


def player_of(number: int) -> str:
    return f"player-{number % PLAYERS}"


def points_of(number: int) -> int:
    return random.Random(number).randint(1, 20)


def encode(number: int, _intended_ns: int) -> tuple[bytes, bytes]:
    """As a Kafka record with the player as its key, so the scores of a player stay in order."""
    player = player_of(number)
    return player.encode(), json.dumps({"player": player, "points": points_of(number)}).encode()


def totals(scores: int) -> dict[str, int]:
    """The leaderboard after so many scores."""
    found: Counter[str] = Counter()
    for number in range(scores):
        found[player_of(number)] += points_of(number)
    return dict(found)


class BoardReader:
    """Reads the totals all the time. A total tells which of the player's scores are in it."""

    def __init__(self) -> None:
        self.redis = connect()
        self.next = list(range(PLAYERS))
        self.total = [0] * PLAYERS

    def read(self) -> Iterator[int]:
        for player, total in self.redis.zrange("leaderboard", 0, -1, withscores=True):
            yield from self.scores_in(int(player.removeprefix("player-")), int(total))

    def scores_in(self, place: int, total: int) -> Iterator[int]:
        while self.total[place] < total:
            number = self.next[place]
            self.next[place] += PLAYERS
            self.total[place] += points_of(number)
            yield number
        if self.total[place] != total:
            raise RuntimeError(f"player-{place} has {total} points, which the scores in their order do not give")

    def close(self) -> None:
        self.redis.close()
