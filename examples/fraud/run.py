"""Rehearse the application on an embedded Kafka and an embedded PostgreSQL.

python run.py                          # under load, for some seconds: the figures
python run.py tailrace check app.py    # any other command, with the servers running
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import app
from load import connect

import tailrace
from tailrace.loadtest import LatencyReport, LoadTest, measure_query, rehearse
from tailrace.results import Latency


@dataclass
class Result:
    at_the_reader: LatencyReport
    acknowledged: Latency
    decisions: list[tuple[int, int, int, str]]
    """Each payment with its time, the payments of its card in the minute before, and the decision."""
    written_again: int

    def __str__(self) -> str:
        kinds = [decision for *_, decision in self.decisions]
        return (
            f"Payment due → decision visible in the table:\n  {self.at_the_reader}\n"
            f"{', '.join(f'{kinds.count(kind)} × {kind}' for kind in sorted(set(kinds)))}; "
            f"decisions written more than once: {self.written_again}\n\n{self.acknowledged}"
        )


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    with (
        tailrace.EmbeddedKafka() as kafka,
        tailrace.EmbeddedPostgres() as postgres,
        tempfile.TemporaryDirectory() as checkpoint,
    ):
        kafka.create_topics(["payments"], partitions=2)
        postgres.execute(app.TABLE)
        yield {
            "KAFKA_SERVERS": kafka.bootstrap_servers,
            "POSTGRES_URL": postgres.url,
            "POSTGRES_USER": postgres.user,
            "POSTGRES_PASSWORD_FILE": postgres.password_file,
            "CHECKPOINT": checkpoint,
        }


def measure(*, seconds: float, rate: float) -> Result:
    spark = app.session()
    spark.sparkContext.setLogLevel("ERROR")
    query = app.start(spark)
    load = LoadTest(
        bootstrap_servers=os.environ["KAFKA_SERVERS"],
        input_topic="payments",
        rate=rate,
        encode="load:encode",
        reader="load:DecisionReader",
    )
    report = measure_query(query, load, seconds=seconds, warm_up=int(5 * rate))
    latency = tailrace.latency(query)
    tailrace.drain(query)
    spark.stop()
    with connect() as connection:
        decisions = connection.execute("SELECT payment, at_ms, payments, decision FROM decisions ORDER BY 1").fetchall()
        # An upsert hides what is written again; PostgreSQL counts it as an update.
        [again] = connection.execute("SELECT pg_stat_get_tuples_updated('decisions'::regclass)").fetchall()
    return Result(report, latency, decisions, again[0])


if __name__ == "__main__":
    rehearse(servers, measure)
