"""A program that a new project's `run.py` runs: kills the application in the middle of an epoch, and starts it again.

It runs in the project's folder, with the servers up and their addresses in the environment, and ends with an error if
anything is missing, wrong or there twice.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import Producer

from tailrace.loadtest import read_topic

RECORDS = 1_000
LIVES = 3
WITHIN_S = 600
APART_NS = 1_000_000
load: Any = importlib.import_module("load")


def readings(topic: str) -> list[int]:
    return sorted(json.loads(value)["reading"] for value in read_topic(os.environ["KAFKA_SERVERS"], topic))


def iot(sent: int) -> bool:
    alerts, commands = (list(filter(which, range(sent))) for which in (load.is_alert, load.is_command))
    found = readings("alerts"), readings("commands")
    assert len(found[0]) <= len(alerts), "an alert was sent twice"
    assert len(found[1]) <= len(commands), "a command was sent twice"
    return found == (alerts, commands)


def leaderboard(sent: int) -> bool:
    board = load.connect().zrange("leaderboard", 0, -1, withscores=True)
    return bool({player: int(total) for player, total in board} == load.totals(sent))


def fraud(sent: int) -> bool:
    with load.connect() as connection:
        [counts] = connection.execute(
            "SELECT count(*), pg_stat_get_tuples_updated('decisions'::regclass) FROM decisions"
        ).fetchall()
    assert counts[1] == 0, f"{counts[1]} decisions were written again"
    return bool(counts[0] == sent)


def personalization(sent: int) -> bool:
    events, redis = Counter(map(load.user_of, range(sent))), importlib.import_module("service").connect()
    found = {user: int(redis.hget(f"features:{user}", "events") or 0) for user in events}
    assert all(found[user] <= count for user, count in events.items()), "an event counts twice"
    return found == events


def alerting(sent: int) -> bool:
    values = map(json.loads, read_topic(os.environ["KAFKA_SERVERS"], "alerts"))
    found = Counter((value["service"], value["alert"], value["request"]) for value in values)
    expected = Counter(alerts_about(sent))
    assert found <= expected, f"sent twice, or without a reason: {sorted((found - expected).elements())}"
    return found == expected


def alerts_about(sent: int) -> Iterator[tuple[str, str, int]]:
    """The failures by the load's own schedule. A service is silent at the end of each life, and back in the next."""
    for number in filter(load.raises_alert, range(sent)):
        is_failing = number // load.SERVICES % load.PERIOD == load.FAILING
        yield service_of(number), "failing" if is_failing else "recovered", number
    for life in range(sent // RECORDS):
        requests = range(life * RECORDS, (life + 1) * RECORDS)
        first, last = {service_of(n): n for n in reversed(requests)}, {service_of(n): n for n in requests}
        yield from ((service, "silent", number) for service, number in last.items())
        if life > 0:
            yield from ((service, "back", number) for service, number in first.items())


def service_of(number: int) -> str:
    service: str = json.loads(load.encode(number, 0)[1])["service"]
    return service


def wait_until(condition: Callable[[int], bool], sent: int, application: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition(sent):
        assert time.monotonic() < deadline, f"{sent} records were not answered in time"
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"the application ended with code {application.wait(timeout=1)}")


def main(template: str, topic: str) -> None:
    condition: Callable[[int], bool] = globals()[template]
    producer = Producer({"bootstrap.servers": os.environ["KAFKA_SERVERS"], "enable.idempotence": True})
    for life in range(LIVES):
        began_ns = time.time_ns()
        for nth, number in enumerate(range(life * RECORDS, (life + 1) * RECORDS)):
            key, value = load.encode(number, began_ns + nth * APART_NS)
            producer.produce(topic, key=key, value=value)
        producer.flush()
        application = subprocess.Popen([sys.executable, "app.py"])
        try:
            wait_until(condition, (life + 1) * RECORDS, application)
        finally:
            # What this life has written is there, and its last epoch is not committed.
            application.kill()
            application.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
