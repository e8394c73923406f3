"""The floor: one consumer and one producer in a Python loop, with no engine between them."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, Producer

from ..job import Job, tell_checkpoint


def run(job: Job, workload: Any) -> None:
    consumer = Consumer(
        {
            **job.client_settings,
            "group.id": job.output_topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 5,
            # The broker gives the partitions of a killed process to its successor after this time.
            "session.timeout.ms": 6000,
        }
    )
    consumer.subscribe(list(job.input_topics))
    producer = Producer({**job.client_settings, "linger.ms": 0, "enable.idempotence": True})
    commit_at = time.monotonic() + job.checkpoint_s
    uncommitted = False
    while True:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            uncommitted = True
            answer = workload.answer(message.value())
            if answer is not None:
                producer.produce(job.output_topic, key=message.key(), value=answer)
        producer.poll(0)
        if time.monotonic() >= commit_at:
            # What was written must be there before the position behind it is.
            producer.flush()
            if uncommitted:
                consumer.commit(asynchronous=False)
                tell_checkpoint()
            uncommitted = False
            commit_at += job.checkpoint_s
