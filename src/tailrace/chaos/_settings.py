"""What the harness tells the driver of the built-in queries: its session on the command line, its queries in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

WANTED = "wanted.json"


@dataclass(frozen=True)
class DriverSettings:
    """Of a driver's session. Given as JSON on its command line."""

    master: str
    bootstrap_servers: str
    folder: str
    shuffle_partitions: int
    stores: tuple[str, ...] = ()
    """Those that a query may write to."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> DriverSettings:
        return cls(**json.loads(text))


@dataclass(frozen=True)
class WantedQuery:
    """A query that is to run. If any of this changes, the driver stops it and starts it again."""

    input_topic: str
    output_topic: str
    checkpoint: str
    epoch_s: int
    warm_up: bool
    """Whether the first epochs are short."""
    version: int = 0
    """Of its code."""
    run: int = 0
    """One more for a plain stop and start."""
    sink_options: dict[str, str] = field(default_factory=dict)
    """Of a store: how it is reached, and what its output is."""


def write_wanted(folder: Path, queries: Mapping[str, WantedQuery]) -> None:
    """Say which queries are to run, by name. The driver looks every few moments, and so does the next one."""
    draft = folder / f"{WANTED}.draft"
    draft.write_text(json.dumps({name: asdict(query) for name, query in queries.items()}), encoding="utf-8")
    draft.replace(folder / WANTED)


def read_wanted(folder: Path) -> dict[str, WantedQuery]:
    found = json.loads((folder / WANTED).read_text(encoding="utf-8"))
    return {name: WantedQuery(**fields) for name, fields in found.items()}


def checkpoint_of(folder: Path, name: str) -> Path:
    return folder / "checkpoints" / name.replace("/", "-")
