"""What the harness passes to the driver of the built-in queries, and where its checkpoints are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """Given as JSON on the driver's command line."""

    master: str
    bootstrap_servers: str
    input_topic: str
    outputs: dict[str, str]
    """The output topic of each query; a query is named "workload/sink"."""
    folder: str
    epoch_s: int
    shuffle_partitions: int
    warm_up: bool
    """Whether the first epochs are short."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        return cls(**json.loads(text))


def checkpoint_of(folder: Path, name: str) -> Path:
    return folder / "checkpoints" / name.replace("/", "-")
