"""Rehearse the application on an embedded Kafka and an embedded Redis, with its service.

python run.py                          # under load, for some seconds: the figures
python run.py tailrace check app.py    # any other command, with the servers running
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
import service
import uvicorn
from load import USERS, user_of

import tailrace
from tailrace.loadtest import LatencyReport, LoadTest, measure_query, read_topic, rehearse
from tailrace.results import Latency


@dataclass
class Result:
    staleness: LatencyReport
    latency: Latency
    sent: int
    features: dict[str, dict[str, str]]

    def __str__(self) -> str:
        return (
            f"Staleness of a feature: event due → noticed in the offers of the service:\n  {self.staleness}\n"
            f"{self.sent} events of {len(self.features)} users\n\n{self.latency}"
        )


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    with (
        tailrace.EmbeddedKafka() as kafka,
        tailrace.EmbeddedRedis() as redis,
        tempfile.TemporaryDirectory() as checkpoint,
    ):
        kafka.create_topics(["events"], partitions=2)
        yield {
            "KAFKA_SERVERS": kafka.bootstrap_servers,
            "REDIS_URL": redis.url,
            "REDIS_PASSWORD_FILE": redis.password_file,
            "CHECKPOINT": checkpoint,
        }


@contextmanager
def serve() -> Iterator[str]:
    """The service, in a thread; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(service.app, log_level="warning"))
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
    with serve() as address:
        load = LoadTest(
            bootstrap_servers=os.environ["KAFKA_SERVERS"],
            input_topic="events",
            rate=rate,
            encode="load:encode",
            reader="load:Visitor",
            reader_options={"url": address},
        )
        staleness = measure_query(query, load, seconds=seconds, warm_up=int(5 * rate))
    latency = tailrace.latency(query)
    tailrace.drain(query)
    spark.stop()
    users = [user_of(number) for number in range(USERS)]
    return Result(
        staleness,
        latency,
        sent=len(read_topic(os.environ["KAFKA_SERVERS"], "events")),
        features={user: service.connect().hgetall(f"features:{user}") for user in users},
    )


if __name__ == "__main__":
    rehearse(servers, measure)
