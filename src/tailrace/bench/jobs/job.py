"""What a job is told. Only the standard library: this file runs in every environment."""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    system: str
    runtime: str
    workload: str
    bootstrap_servers: str
    input_topics: tuple[str, ...]
    output_topic: str
    partitions: int
    checkpoint_s: int
    has_state: bool
    folder: str
    """For checkpoints, state and whatever else the system writes."""
    jars: tuple[str, ...] = ()
    spark_options: dict[str, str] = dataclasses.field(default_factory=dict, repr=False)
    """How Spark reaches the cluster. Passwords are among them: a job is kept in a private folder."""
    client_settings: dict[str, str] = dataclasses.field(default_factory=dict, repr=False)
    """The same for clients of librdkafka."""

    @classmethod
    def from_json(cls, text: str) -> Job:
        fields = json.loads(text)
        lists = {name: tuple(fields[name]) for name in ("input_topics", "jars")}
        return cls(**(fields | lists))

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


CHECKPOINT = "@checkpoint "


def tell_checkpoint() -> None:
    """For the systems whose checkpoints leave no file: the harness reads when they were made."""
    print(f"{CHECKPOINT}{time.time():.3f}", flush=True)
