"""The workloads: what they do, with which records, and what others have published about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

RECORDS = "tailrace.bench.records"


@dataclass(frozen=True)
class Published:
    """A figure of somebody else, from another machine."""

    system: str
    p50_ms: float | None
    p99_ms: float | None
    source: str
    setting: str


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    keys: int = 1000
    streams: int = 1
    record_bytes: int = 200
    repeats: bool = False
    decode: str = f"{RECORDS}:OneByOne"
    decode_options: dict[str, Any] = field(default_factory=dict)
    is_answered: str = "tailrace.loadtest.records:answers_all"
    has_timers: bool = False
    """Its output has rows that no record causes, and must have some."""
    published: tuple[Published, ...] = ()

    def encode_options(self, record_bytes: int | None) -> dict[str, Any]:
        return {
            "record_bytes": record_bytes or self.record_bytes,
            "keys": self.keys,
            "streams": self.streams,
            "repeats": self.repeats,
        }


def _counted(keys: int, window_s: int | None = None) -> dict[str, Any]:
    return {"decode": f"{RECORDS}:Counted", "decode_options": {"keys": keys, "window_s": window_s}}


OWN = (
    Workload("stateless", "parse, filter, project", is_answered=f"{RECORDS}:passes_filter"),
    Workload("python-per-record", "a Python function for each record"),
    Workload("keyed-aggregate", "count and sum by key, 1,000 keys", **_counted(1000)),
    Workload("keyed-state", "Python with state by key and a timer, 1,000 keys", has_timers=True, **_counted(1000)),
    Workload(
        "stream-join",
        "two streams, joined by id",
        # Every pair has a key of its own, for as long as the state keeps it.
        keys=10**9,
        streams=2,
        is_answered=f"{RECORDS}:completes_pair",
    ),
)
VENDOR = (
    Workload("vendor-a", "the vendor's A: truncate, base64", record_bytes=1200, decode=f"{RECORDS}:Encoded"),
    Workload("vendor-b", "the vendor's B: A, count by text and minute", record_bytes=1200, **_counted(1000, 60)),
    Workload("vendor-c", "the vendor's C: A, join with a table of 10,000 rows", record_bytes=1200),
)
SPARKS = (
    Workload(
        "rtm-stateless",
        "Spark's own: base64",
        decode=f"{RECORDS}:Encoded",
        published=(
            Published(
                "Spark Real-Time Mode",
                p50_ms=69,
                p99_ms=84,
                source="Apache Spark, RTMKafkaKafkaBenchmark-results.txt",
                setting="1,000 records/s, 5 partitions, epochs of 5 minutes, 3 workers of 5 cores, Xeon 6975P-C",
            ),
        ),
    ),
    Workload(
        "rtm-dedup",
        "Spark's own: deduplication, 80 % fresh",
        keys=10**9,
        repeats=True,
        is_answered=f"{RECORDS}:is_fresh",
    ),
    Workload("rtm-window", "Spark's own: one-minute window, 1,000 keys", **_counted(1000, 60)),
    Workload("rtm-state", "Spark's own, in Python: state by key, 50,000 keys", keys=50_000, **_counted(50_000)),
)
WORKLOADS = {workload.name: workload for workload in (*OWN, *VENDOR, *SPARKS)}
USUAL = tuple(workload.name for workload in OWN)
QUICK = ("stateless", "keyed-aggregate")
