"""Rehearse the application on an embedded Kafka.

python run.py                          # under load, for some seconds: the figures
python run.py tailrace check app.py    # any other command, with the server running
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import app
from load import DEVICES

import tailrace
from tailrace.loadtest import LatencyReport, LoadTest, measure_query, read_topic, rehearse
from tailrace.results import Latency


@dataclass
class Result:
    commands: LatencyReport
    latency: Latency
    sent: int
    alerted: list[int]
    """The readings that alerts are about, as often as they are in the topic."""
    commanded: list[tuple[int, str]]

    def __str__(self) -> str:
        again = len(self.alerted) - len(set(self.alerted))
        return (
            f"Reading due → command at its consumer:\n  {self.commands}\n"
            f"{self.sent} readings, {len(self.alerted)} alerts ({again} of them duplicates), "
            f"{len(self.commanded)} commands in the whole run\n\n{self.latency}"
        )


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    with tailrace.EmbeddedKafka() as kafka, tempfile.TemporaryDirectory() as checkpoint:
        kafka.create_topics(["readings", "judged", "alerts", "commands"], partitions=2)
        yield {"KAFKA_SERVERS": kafka.bootstrap_servers, "CHECKPOINT": checkpoint}


def measure(*, seconds: float, rate: float) -> Result:
    servers = os.environ["KAFKA_SERVERS"]
    spark = app.session()
    spark.sparkContext.setLogLevel("ERROR")
    query = app.start(spark)
    load = LoadTest(
        bootstrap_servers=servers,
        input_topic="readings",
        output_topic="commands",
        rate=rate,
        encode="load:encode",
        decode="load:decode",
        is_answered="load:is_command",
    )
    report = measure_query(query, load, seconds=seconds, warm_up=DEVICES)
    latency = tailrace.latency(query)
    tailrace.drain(query)
    spark.stop()
    return Result(
        report,
        latency,
        sent=len(read_topic(servers, "readings")),
        alerted=[json.loads(alert)["reading"] for alert in read_topic(servers, "alerts")],
        commanded=[(one["reading"], one["what"]) for one in map(json.loads, read_topic(servers, "commands"))],
    )


if __name__ == "__main__":
    rehearse(servers, measure)
