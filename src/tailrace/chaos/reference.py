"""Runs a user's script twice more, without a fault and in micro-batch, to learn what its output should be."""

from __future__ import annotations

import tempfile
import time
import uuid
from pathlib import Path

from confluent_kafka import KafkaException, Producer

from tailrace._broker.admin import SILENT
from tailrace._kafka.cluster import Servers, client_settings
from tailrace.chaos._events import Event
from tailrace.chaos._reference import Reference
from tailrace.chaos.delivery import Delivery, answers_of
from tailrace.chaos.driver import Driver
from tailrace.chaos.expected import Answer, Sent
from tailrace.chaos.options import UsersQuery
from tailrace.chaos.reference_check import compare_with_references
from tailrace.chaos.topics import Read, partitions_of, read_all
from tailrace.errors import TailraceError
from tailrace.kafka import create_topics, delete_topics

DONE_WITHIN_S = 300
LOOK_EVERY_S = 0.1
# Of the second run: it sees state that was committed in between.
BATCHES = 4


def check_against_references(yours: UsersQuery, delivery: Delivery, sent: list[Sent], log: Path) -> str:
    """Add to the delivery what differs from the references. Returns what was compared, or why nothing was.

    The user's own run must have ended.
    """
    servers, tag = yours.cluster, uuid.uuid4().hex[:8]
    first, second, copy = (f"{yours.output_topic}-{name}-{tag}" for name in ("reference-1", "reference-2", "input"))
    made: list[str] = []
    try:
        for topic, model in ((first, yours.output_topic), (second, yours.output_topic), (copy, yours.input_topic)):
            create_topics(servers, [topic], partitions=partitions_of(servers, model))
            made.append(topic)
        _copy_with_partitions_reversed(servers, yours.input_topic, copy)
        size = max(len(sent), 1)
        references = [
            _run(yours, first, yours.input_topic, size, log),
            _run(yours, second, copy, -(-size // BATCHES), log),
        ]
    except (TailraceError, KafkaException) as problem:
        reason = problem.problem if isinstance(problem, TailraceError) else str(problem)
        return f"values and order were not compared, there is no reference: {reason}"
    finally:
        delete_topics(servers, made) if made else None
    answers = answers_of(read_all(servers, yours.output_topic), yours.id_field)
    return str(compare_with_references(delivery, sent, answers, references, yours.id_field))


def _run(yours: UsersQuery, topic: str, read_from: str, batch_size: int, log: Path) -> list[Answer]:
    events: list[Event] = []
    with tempfile.TemporaryDirectory(prefix="tailrace-chaos-") as checkpoint:
        reference = Reference(yours.output_topic, yours.input_topic, topic, read_from, checkpoint, batch_size)
        command = ["tailrace.chaos._reference", reference.to_json(), str(yours.script), *yours.arguments]
        driver = Driver(lambda: command, log, events.append)
        driver.start()
        try:
            deadline = time.monotonic() + DONE_WITHIN_S
            while not (done := any(event.name == "reference" for event in list(events))):
                if driver.has_ended or time.monotonic() > deadline:
                    break
                time.sleep(LOOK_EVERY_S)
        finally:
            # Waits for what it still says.
            driver.kill()
    if not done and not any(event.name == "reference" for event in events):
        raise TailraceError(
            "TAILRACE_QUERY_FAILED",
            f"the script runs no query in micro-batch that writes to '{yours.output_topic}' with the option topic.",
            f"read its log: {log}",
        )
    return answers_of(read_all(yours.cluster, topic), yours.id_field)


def _copy_with_partitions_reversed(servers: Servers, source: str, target: str) -> None:
    """Each partition keeps its order; tasks and shuffles meet them in another one."""
    producer = Producer(client_settings(servers, {"enable.idempotence": True, "log_level": 0}), logger=SILENT)
    last = partitions_of(servers, source) - 1
    for read in read_all(servers, source):
        _produce(producer, target, last - read.partition, read)
    if producer.flush(DONE_WITHIN_S):
        raise TailraceError("TAILRACE_HARNESS_FAILED", f"'{target}' could not be written.", "look at the broker's log.")


def _produce(producer: Producer, topic: str, partition: int, read: Read) -> None:
    while True:
        try:
            producer.produce(topic, key=read.key, value=read.value, partition=partition, timestamp=read.timestamp_ms)
            return
        except BufferError:
            producer.poll(0.1)
