"""From where the next run of a query reads, by its checkpoint."""

from __future__ import annotations

import json
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEADER_LINES = 2
"""The log's version and the query's settings; then a line for each source."""

Offsets = dict[str, dict[str, int]]
"""By topic and partition."""


@dataclass(frozen=True)
class Replay:
    checkpoint: str
    epoch: int | None = None
    """The last one that was committed; None if there was none, or if it could not be read."""
    begins_at: Offsets = field(default_factory=dict)
    read_to: Offsets = field(default_factory=dict)
    """The offset behind the last record that was read, as far as it is known."""
    problem: str | None = None
    """Why the checkpoint could not be read."""

    def records_of(self, topic: str, partition: str) -> int | None:
        """How many are read once more, as far as it is known."""
        begin = self.begins_at.get(topic, {}).get(partition)
        end = self.read_to.get(topic, {}).get(partition)
        return None if begin is None or end is None else max(0, end - begin)


def replay_of(checkpoint: str, read_to: Offsets | None = None) -> Replay:
    parts = urllib.parse.urlsplit(checkpoint)
    if parts.scheme not in ("", "file"):
        return Replay(checkpoint, read_to=read_to or {}, problem=f"{parts.scheme}: is not read from here")
    folder = Path(urllib.parse.unquote(parts.path))
    try:
        epoch = max((int(entry.name) for entry in (folder / "commits").iterdir() if entry.name.isdigit()), default=None)
        begins_at = _offsets_in(folder / "offsets" / str(epoch)) if epoch is not None else {}
    except (OSError, ValueError) as failure:
        return Replay(checkpoint, read_to=read_to or {}, problem=str(failure))
    return Replay(checkpoint, epoch, begins_at, read_to or {})


def _offsets_in(file: Path) -> Offsets:
    """Those of Kafka; other sources write theirs in other ways."""
    found: Offsets = {}
    for line in file.read_text(encoding="utf-8").splitlines()[HEADER_LINES:]:
        source: Any = json.loads(line) if line.startswith("{") else {}
        for topic, partitions in source.items():
            if isinstance(partitions, dict):
                found.setdefault(topic, {}).update({str(one): int(offset) for one, offset in partitions.items()})
    return found
