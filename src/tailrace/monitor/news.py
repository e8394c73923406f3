"""What the plugin tells the driver's Python, parsed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SeriesKey:
    """What durations are about. With a topic, `partition` is one of the source's, else a task of the stage."""

    figure: str
    stage: int
    topic: str
    partition: int


@dataclass(frozen=True)
class SeriesNews:
    run: str
    key: SeriesKey
    counts: dict[int, int]


@dataclass(frozen=True)
class ReadNews:
    """How far a task is with its partition of a source."""

    run: str
    epoch: int
    topic: str
    partition: int
    began_us: int
    ended_us: int
    offset: int
    rows: int


@dataclass(frozen=True)
class NewestOffset:
    run: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class ExecutorNews:
    id: str
    cpu_load: float
    process_cpu_load: float
    heap_used_bytes: int
    heap_max_bytes: int
    gc_pauses_us: list[int]
    hiccups: dict[int, int]


@dataclass(frozen=True)
class News:
    """Everything since the last time."""

    series: list[SeriesNews]
    reads: list[ReadNews]
    newest: list[NewestOffset]
    executors: list[ExecutorNews]
    written: dict[str, int]
    """Rows handed to the sink, by run."""
    events: list[dict[str, Any]]

    @classmethod
    def parse(cls, text: str) -> News:
        told = json.loads(text)
        return cls(
            series=[
                SeriesNews(
                    one["run"],
                    SeriesKey(one["figure"], one["stage"], one["topic"], one["partition"]),
                    _counts(one["counts"]),
                )
                for one in told["series"]
            ],
            reads=[ReadNews(**one) for one in told["reads"]],
            newest=[NewestOffset(**one) for one in told["newest"]],
            executors=[ExecutorNews(**{**one, "hiccups": _counts(one["hiccups"])}) for one in told["executors"]],
            written={one["run"]: one["rows"] for one in told["written"]},
            events=told["events"],
        )


def _counts(flat: list[int]) -> dict[int, int]:
    """From bucket, count, bucket, count and so on."""
    return dict(zip(flat[::2], flat[1::2], strict=True))
