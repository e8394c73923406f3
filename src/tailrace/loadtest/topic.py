"""What a topic holds, to compare it with what it should hold."""

from __future__ import annotations

import time
import uuid

from confluent_kafka import Consumer, TopicPartition

from tailrace.errors import TailraceError

READ_WITHIN_S = 120


def read_topic(bootstrap_servers: str, topic: str) -> list[bytes]:
    """The values of all committed records of a topic, from its beginning to its present end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"tailrace-reader-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
        }
    )
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.list_topics(topic).topics[topic].partitions]
        ends = {one.partition: consumer.get_watermark_offsets(one)[1] for one in partitions}
        consumer.assign([TopicPartition(topic, one.partition, 0) for one in partitions])
        values: list[bytes] = []
        deadline = time.monotonic() + READ_WITHIN_S
        while any(at.offset < ends[at.partition] for at in consumer.position(partitions) if ends[at.partition]):
            if time.monotonic() > deadline:
                raise TailraceError(
                    "TAILRACE_HARNESS_FAILED", f"'{topic}' was not read to its end.", "look at the broker's log."
                )
            record = consumer.poll(0.1)
            if record is not None and not record.error():
                values.append(record.value() or b"")
        return values
    finally:
        consumer.close()
