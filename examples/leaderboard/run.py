"""Rehearse the application on an embedded Kafka and an embedded Redis, with its page.

python run.py                          # under load, for some seconds: the figures
python run.py tailrace check app.py    # any other command, with the servers running
python run.py uvicorn page:app         # the page, with nothing on it yet
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import app
import page
import uvicorn

import tailrace
from tailrace.loadtest import LatencyReport, LoadTest, measure_query, read_topic, rehearse
from tailrace.results import Latency


@dataclass
class Result:
    at_the_reader: LatencyReport
    latency: Latency
    sent: int
    board: dict[str, int]

    def __str__(self) -> str:
        best = sorted(self.board.items(), key=lambda entry: -entry[1])[:3]
        return (
            f"Score due → in the leaderboard:\n  {self.at_the_reader}\n"
            f"{self.sent} scores of {len(self.board)} players; the best: "
            f"{', '.join(f'{player} {total}' for player, total in best)}\n\n{self.latency}"
        )


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    with (
        tailrace.EmbeddedKafka() as kafka,
        tailrace.EmbeddedRedis() as redis,
        tempfile.TemporaryDirectory() as checkpoint,
    ):
        kafka.create_topics(["scores"], partitions=2)
        yield {
            "KAFKA_SERVERS": kafka.bootstrap_servers,
            "REDIS_URL": redis.url,
            "REDIS_PASSWORD_FILE": redis.password_file,
            "CHECKPOINT": checkpoint,
        }


@contextmanager
def serve() -> Iterator[str]:
    """The page, in a thread; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(page.app, log_level="warning"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def measure(*, seconds: float, rate: float) -> Result:
    spark = app.session()
    spark.sparkContext.setLogLevel("ERROR")
    query = app.start(spark)
    load = LoadTest(
        bootstrap_servers=os.environ["KAFKA_SERVERS"],
        input_topic="scores",
        rate=rate,
        encode="load:encode",
        reader="load:BoardReader",
    )
    with serve() as address:
        print(f"The top ten, live: {address}", flush=True)
        report = measure_query(query, load, seconds=seconds, warm_up=int(5 * rate))
    latency = tailrace.latency(query)
    tailrace.drain(query)
    spark.stop()
    board = page.connect().zrange("leaderboard", 0, -1, withscores=True)
    sent = len(read_topic(os.environ["KAFKA_SERVERS"], "scores"))
    return Result(report, latency, sent, {player: int(total) for player, total in board})


if __name__ == "__main__":
    rehearse(servers, measure)
