"""From where the next run of a query reads, by its checkpoint."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tailrace._process.redaction import hide_in_text
from tailrace.contract.codec import parsed

HEADER_LINES = 2
"""The log's version and the query's settings; then a line for each source."""

LONGEST_NUMBER = 10

Offsets = dict[str, dict[str, int]]
"""By topic and partition."""


@dataclass(frozen=True)
class Replay:
    checkpoint: str
    epoch: int | None = None
    """The last one that was committed; None if there was none, or if it could not be read."""
    begins_at: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    read_to: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The offset behind the last record that was read, as far as it is known."""
    problem: str | None = None
    """Why the checkpoint could not be read."""

    def redacted(self) -> Replay:
        """For a report: the checkpoint's address may contain a password."""
        problem = hide_in_text(self.problem) if self.problem else None
        return replace(self, checkpoint=hide_in_text(self.checkpoint), problem=problem)

    def records_of(self, topic: str, partition: str) -> int | None:
        """How many are read once more, as far as it is known."""
        begin = self.begins_at.get(topic, {}).get(partition)
        end = self.read_to.get(topic, {}).get(partition)
        return None if begin is None or end is None else max(0, end - begin)


def replay_of(checkpoint: str, read_to: Offsets | None = None) -> Replay:
    try:
        parts = urllib.parse.urlsplit(checkpoint)
        if parts.scheme not in ("", "file"):
            return Replay(checkpoint, read_to=read_to or {}, problem=f"{parts.scheme}: is not read from here")
        folder = Path(urllib.parse.unquote(parts.path))
        epoch = max((int(entry.name) for entry in (folder / "commits").iterdir() if entry.name.isdigit()), default=None)
        begins_at = _offsets_in(folder / "offsets" / str(epoch)) if epoch is not None else {}
    except (OSError, ValueError) as failure:
        return Replay(checkpoint, read_to=read_to or {}, problem=str(failure))
    return Replay(checkpoint, epoch, begins_at, read_to or {})


def _offsets_in(file: Path) -> Offsets:
    """Those of Kafka; other sources write theirs in other ways."""
    found: Offsets = {}
    for line in file.read_text(encoding="utf-8").splitlines()[HEADER_LINES:]:
        source: Any = parsed(line) if line.startswith("{") else {}
        for topic, partitions in source.items():
            if isinstance(partitions, dict) and all(map(_is_offset, partitions, partitions.values())):
                found.setdefault(topic, {}).update(partitions)
    return found


def _is_offset(partition: str, offset: object) -> bool:
    return partition.isdecimal() and len(partition) <= LONGEST_NUMBER and type(offset) is int
