"""Quix Streams: a Python library over Kafka; state in RocksDB, with changelog topics."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from quixstreams import Application

from ..job import Job


def run(job: Job, workload: Any) -> None:
    application = Application(
        broker_address=job.bootstrap_servers,
        consumer_group=job.output_topic,
        auto_offset_reset="earliest",
        commit_interval=float(job.checkpoint_s),
        state_dir=Path(job.folder) / "state",
        processing_guarantee="at-least-once",
        # The broker gives the partitions of a killed process to its successor after the session's time.
        consumer_extra_config={"fetch.wait.max.ms": 5, "session.timeout.ms": 6000},
        producer_extra_config={"linger.ms": 0},
    )
    # It tells of its commits there.
    logging.getLogger("quixstreams.processing.context").setLevel(logging.DEBUG)
    value = getattr(workload, "VALUE", "json")
    frames = [
        application.dataframe(application.topic(topic, key_deserializer="str", value_deserializer=value))
        for topic in job.input_topics
    ]
    target = application.topic(job.output_topic, key_serializer="str", value_serializer=value)
    workload.build(*frames).to_topic(target)
    application.run()
