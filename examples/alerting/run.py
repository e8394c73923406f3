"""Rehearse the application on an embedded Kafka.

python run.py                          # under load, for some seconds: the figures
python run.py tailrace check app.py    # any other command, with the server running
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import app
from load import SERVICES

import tailrace
from tailrace.loadtest import LatencyReport, LoadTest, measure_query, read_topic, rehearse
from tailrace.results import Latency


@dataclass
class Result:
    at_the_consumer: LatencyReport
    latency: Latency
    sent: int
    alerts: list[tuple[str, str, int]]
    """Service, alert and the request it is about, as often as they are in the topic."""

    def __str__(self) -> str:
        kinds = Counter(alert for _, alert, _ in self.alerts)
        return (
            f"Request due → alert about failures at its consumer:\n  {self.at_the_consumer}\n"
            f"{self.sent} requests; {', '.join(f'{count} × {kind}' for kind, count in sorted(kinds.items()))}; "
            f"sent more than once: {len(self.alerts) - len(set(self.alerts))}\n\n{self.latency}"
        )


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    with tailrace.EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as checkpoint:
        kafka.create_topics(["requests", "alerts"], partitions=2)
        yield {"KAFKA_SERVERS": kafka.bootstrap_servers, "CHECKPOINT": checkpoint}


def measure(*, seconds: float, rate: float) -> Result:
    servers = os.environ["KAFKA_SERVERS"]
    spark = app.session()
    spark.sparkContext.setLogLevel("ERROR")
    query = app.start(spark)
    load = LoadTest(
        bootstrap_servers=servers,
        input_topic="requests",
        output_topic="alerts",
        rate=rate,
        encode="load:encode",
        decode="load:decode",
        is_answered="load:raises_alert",
    )
    report = measure_query(query, load, seconds=seconds, warm_up=SERVICES)
    latency = tailrace.latency(query)
    tailrace.drain(query)
    spark.stop()
    alerts = [json.loads(alert) for alert in read_topic(servers, "alerts")]
    return Result(
        report,
        latency,
        sent=len(read_topic(servers, "requests")),
        alerts=[(alert["service"], alert["alert"], alert["request"]) for alert in alerts],
    )


if __name__ == "__main__":
    rehearse(servers, measure)
