"""A query whose code or topic was changed between two runs: from where on it holds, and what must be there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailrace.chaos.delivery import Delivery
from tailrace.chaos.expected import Answer, Sent, parts_of
from tailrace.chaos.records import short_lived_key


@dataclass(frozen=True)
class Change:
    """From these offsets on, a changed query computed the records, and wrote to this topic."""

    version: int
    topic: str
    committed: Mapping[int, int]
    """For each input partition, the offset of the first record that was not committed when it changed."""


def compare_changes(
    sent: Sequence[Sent], answers: Mapping[str, Sequence[Answer]], changes: Sequence[Change]
) -> Delivery:
    """Of each record, the topic holds what the query made of it when it was committed; earlier rows may be there, too.

    :param answers: by topic.
    :param changes: the first one is the query's first run.
    """
    made = {topic: Counter(f"{a.number}{a.fields.get('part')}" for a in found) for topic, found in answers.items()}
    asked = {each.record.number: each.record for each in sent}
    delivery = Delivery(sent=len(sent), due=0, out=sum(counter.total() for counter in made.values()))
    for each in sent:
        final = next(c for c in reversed(changes) if each.offset >= c.committed.get(each.partition, 0))
        parts = parts_of(each.record, final.version)
        delivery.due += len(parts)
        delivery.lost += [each.record.number for part in parts if not made[final.topic][part]]
    for found in answers.values():
        for answer in found:
            if answer.number not in asked:
                delivery.unknown.append(answer.number)
            elif answer.key != short_lived_key(answer.number):
                delivery.wrong.append(answer.number)
    delivery.duplicates = [
        int(row[:-1]) for counter in made.values() for row, count in counter.items() for _ in range(count - 1)
    ]
    return delivery


def last_commit(checkpoint: Path) -> int:
    """The number of the last committed epoch; -1 if there is none."""
    names = (entry.name for entry in (checkpoint / "commits").glob("*"))
    return max((int(name) for name in names if name.isdigit()), default=-1)


def committed_offsets(checkpoint: Path, topic: str) -> dict[int, int]:
    """For each partition of the input, the offset of the first record that is not committed."""
    number = last_commit(checkpoint)
    if number < 0:
        return {}
    for line in (checkpoint / "offsets" / str(number)).read_text(encoding="utf-8").splitlines():
        if line.startswith("{"):
            offsets = json.loads(line).get(topic)
            if isinstance(offsets, dict):
                return {int(partition): int(offset) for partition, offset in offsets.items()}
    return {}
