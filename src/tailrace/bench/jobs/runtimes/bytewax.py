"""Bytewax: a Rust engine that calls Python; its recovery store takes a snapshot at the end of each epoch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow, Stream
from bytewax.operators import StatefulLogic
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

from ..job import Job


def run(job: Job, workload: Any) -> None:
    flow = Dataflow("bench")
    brokers = [job.bootstrap_servers]
    inputs = [
        op.input(f"in{number}", flow, KafkaSource(brokers, [topic], add_config={"fetch.wait.max.ms": "5"}))
        for number, topic in enumerate(job.input_topics)
    ]
    answers = op.map("message", workload.build(*inputs), lambda value: KafkaSinkMessage(None, value))
    op.output("out", answers, KafkaSink(brokers, job.output_topic, add_config={"linger.ms": "0"}))
    recovery = Path(job.folder) / "recovery"
    if not recovery.exists():
        recovery.mkdir()
        init_db_dir(recovery, 1)
    cli_main(
        flow,
        # Workers are threads that share the interpreter.
        workers_per_process=1,
        epoch_interval=timedelta(seconds=job.checkpoint_s),
        recovery_config=RecoveryConfig(recovery),
    )


def by_key(name: str, messages: Stream[Any]) -> Stream[Any]:
    """(key, record)."""
    return op.map(name, messages, lambda message: ((record := json.loads(message.value))["key"], record))


def written(answers: Stream[Any]) -> Stream[Any]:
    """The values of a keyed stream, as JSON."""
    return op.map("json", answers, lambda pair: json.dumps(pair[1]).encode())


class Logic(StatefulLogic):
    """State that is kept for ever, and answers each record."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def answer(self, record: dict[str, Any]) -> Iterable[dict[str, Any]]:
        raise NotImplementedError

    def on_item(self, value: dict[str, Any]) -> tuple[Iterable[dict[str, Any]], bool]:
        return self.answer(value), StatefulLogic.RETAIN

    def snapshot(self) -> Any:
        return self.state


def identity(record: dict[str, Any]) -> dict[str, Any]:
    """The fields by which an answer is recognized."""
    return {"key": record["key"], "number": record["number"], "intended_ns": record["intended_ns"]}
