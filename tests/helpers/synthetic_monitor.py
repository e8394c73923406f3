"""A monitor with realistic made-up figures: the same second always has the same figures.

To look at the page while working on it: python -m tests.helpers.synthetic_monitor --port 4050
"""

from __future__ import annotations

import argparse
import copy
import math
import random
import threading
import time
from functools import lru_cache
from typing import Any

from tailrace.contract.codec import decode, encode
from tailrace.contract.snapshot import Boundary, History, Snapshot
from tailrace.monitor.epochs import pause_of

Json = dict[str, Any]

WINDOWS = {"10s": 10.0, "1m": 60.0, "run": 1000.0}
BOUNDS_MS = [0.5 * 2**power for power in range(16)]
HISTORY_S = 600


class SyntheticMonitor:
    """Returns the queries that it was created with. `queries` may change while a dashboard shows them."""

    def __init__(self, *queries: Json) -> None:
        self.queries = list(queries)
        self.failure: Exception | None = None
        self.asked = 0

    def snapshot(self) -> Snapshot:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        figures = {
            "at": time.time(),
            "application": {
                "id": "local-1794800000000",
                "name": "payments",
                "master": "local[8]",
                "spark_version": "4.3.0",
                "tailrace_version": "0.1.0",
            },
            "executors": [executor("driver", cpu=0.41), executor("1", cpu=0.93)],
            "queries": [as_of_now(query) for query in self.queries],
        }
        return decode(Snapshot, figures)

    def history(self, run_id: str) -> History | None:
        if self.failure is not None:
            raise self.failure
        query = next((query for query in self.queries if query["run_id"] == run_id), None)
        return None if query is None else decode(History, history(query))


def make_query(
    name: str | None = "fraud",
    *,
    status: str = "running",
    error: str | None = None,
    partitions: int = 6,
    hot: int | None = 3,
    ran_s: float = 1000,
    epoch_s: float = 60,
    findings: list[Json] | None = None,
    empty: bool = False,
) -> Json:
    """A query of two stages. `empty`: it has just started, and nothing is recorded yet."""
    identity = f"{name or 'unnamed'}"
    now = time.time()
    ended = status in ("ended", "failed")
    slow = 12.0 if status == "lagging" else 1.0
    return {
        "id": f"id-of-{identity}",
        "run_id": f"run-of-{identity}",
        "name": name,
        "status": status,
        "starting_reason": "nothing has been read yet" if status == "starting" else None,
        "error": error,
        "started_at": now - ran_s,
        "ended_at": now - 5 if ended else None,
        "lag_rows": None if empty else 48_211 if status == "lagging" else 12,
        "epoch": {"number": 12, "began_at": now - 22, "duration_s": epoch_s},
        "boundaries": [] if empty else boundaries(now - ran_s, now, epoch_s),
        "pause": None if empty else pause_over(boundaries(now - ran_s, now, epoch_s)),
        "windows": {label: window(length, None if empty else 5.6 * slow) for label, length in WINDOWS.items()},
        "partitions": [make_partition(number, hot=number == hot, empty=empty) for number in range(partitions)],
        "stages": make_stages(partitions, slow, empty=empty),
        "state": [] if empty else [state("stateStoreSave", 184_220, 58_400_000, 118.0)],
        "bad_records": {"records": 0, "last_at": None, "last_error": None},
        "findings": copy.deepcopy(THREE_FINDINGS) if findings is None else findings,
    }


def dist(p50_ms: float | None, *, tail: float = 1.0, count: int = 5000) -> Json | None:
    """A distribution with the long tail of a streaming query; None for None."""
    if p50_ms is None:
        return None
    factors = {"mean_ms": 1.4, "p50_ms": 1, "p90_ms": 1.7, "p99_ms": 8.7, "p999_ms": 40, "max_ms": 61}
    return {"count": count, **{key: p50_ms * (1 + (factor - 1) * tail) for key, factor in factors.items()}}


def window(length_s: float, p50_ms: float | None) -> Json:
    def share(of_p50: float, tail: float) -> Json | None:
        return None if p50_ms is None else dist(p50_ms * of_p50, tail=tail)

    rows = 0 if p50_ms is None else int(12_340 * length_s)
    return {
        "seconds": length_s,
        "rows_in": rows,
        "rows_out": rows,
        "rows_in_per_s": rows / length_s,
        "rows_out_per_s": rows / length_s,
        "source_queue": share(0.26, 1.3),
        "processing": share(0.49, 1.0),
        "end_to_end": share(1.0, 1.0),
        "sink": share(0.02, 0.3),
        "acknowledgement": share(0.25, 0.55),
        "python": share(0.3, 0.8),
        "shuffle": share(0.1, 0.5),
    }


def make_partition(number: int, *, hot: bool = False, empty: bool = False) -> Json:
    p50 = None if empty else 34.0 if hot else 4.8 + number % 7 / 5

    def of_window() -> Json:
        return {
            "rows_in_per_s": 0.0 if empty else 8_761.0 if hot else 700.0 + 7 * (number % 9),
            "source_queue": p50 and dist(p50 * (0.62 if hot else 0.25)),
            "processing": p50 and dist(p50 * (0.3 if hot else 0.5), tail=0.9),
            "end_to_end": p50 and dist(p50),
        }

    return {
        "topic": "payments",
        "partition": number,
        "offset": None if empty else 1_000_000 + number,
        "latest_offset": None if empty else 1_000_007 + number,
        "lag_rows": None if empty else 1_204 if hot else number % 3,
        "windows": {label: of_window() for label in WINDOWS},
    }


def make_stages(partitions: int, slow: float, *, empty: bool) -> list[Json]:
    def stage(number: int, p50: float, *, shuffle: float | None, python: float | None, tasks: int, **more: Any) -> Json:
        def figures(factor: float) -> Json:
            return {
                "rows_per_s": 0.0 if empty else 12_340.0 * factor,
                "time": None if empty else dist(p50 * slow * factor),
                "shuffle": None if empty or shuffle is None else dist(shuffle * slow),
                "python": None if empty or python is None else dist(python * slow, tail=0.6),
            }

        return {
            "stage": number,
            **more,
            "windows": {label: figures(1) for label in WINDOWS},
            "tasks": [
                {"partition": task, "windows": {label: figures(0.7 + task * 7 % 5 / 10) for label in WINDOWS}}
                for task in range(tasks)
            ],
        }

    reads: Json = {"inputs": [], "sources": ["payments"], "sink": None}
    reads["operators"] = ["Kafka source", "filter, where", "select, withColumn", "pandas_udf"]
    counts: Json = {"inputs": [0], "sources": [], "sink": "kafka"}
    counts["operators"] = ["groupBy().agg()", "select, withColumn", "Kafka sink"]
    return [
        stage(0, 2.1, shuffle=None, python=1.4, tasks=partitions, **reads),
        stage(1, 0.7, shuffle=0.3, python=None, tasks=4, **counts),
    ]


def executor(name: str, *, cpu: float) -> Json:
    return {
        "id": name,
        "cpu_load": cpu,
        "process_cpu_load": cpu * 0.6,
        "gc_pauses": 3,
        "gc_total_ms": 41.0,
        "gc_max_ms": 22.0,
        "hiccup_p99_ms": 4.1,
        "hiccup_max_ms": 23.0,
        "heap_used_bytes": 1_310_000_000,
        "heap_max_bytes": 4_294_967_296,
    }


def state(operator: str, rows: int, memory_bytes: int, commit_ms: float) -> Json:
    return {"operator": operator, "rows": rows, "memory_bytes": memory_bytes, "commit_ms": commit_ms}


def boundaries(begin: float, end: float, epoch_s: float) -> list[Json]:
    """Epochs end on the minute (or whatever their length is), as seen by the clock."""
    first = math.ceil(begin / epoch_s) * epoch_s
    count = max(0, math.floor((end - first) / epoch_s) + 1)
    return [boundary(first + number * epoch_s, number, 190.0 + number * 7) for number in range(count)][-60:]


def boundary(at: float, epoch: int, pause_ms: float) -> Json:
    shares = {"finish": 0.2, "log": 0.1, "plan": 0.4, "launch": 0.3}
    return {
        "at": at,
        "epoch": epoch,
        "pause_ms": pause_ms,
        "parts_ms": {part: share * pause_ms for part, share in shares.items()},
        "overlapped": False,
        "reason": "dropDuplicates does not overlap epochs",
    }


def pause_over(boundaries: list[Json]) -> Json | None:
    pause: Json | None = encode(pause_of([decode(Boundary, one) for one in boundaries]))
    return pause


def as_of_now(query: Json) -> Json:
    """The query's epochs end while it is being watched."""
    if query["ended_at"] is not None or not query["boundaries"]:
        return query
    length = query["epoch"]["duration_s"]
    ends = boundaries(query["started_at"], time.time(), length)
    last = ends[-1]
    epoch = {"number": last["epoch"] + 1, "began_at": last["at"], "duration_s": length}
    return {**query, "boundaries": ends, "pause": pause_over(ends), "epoch": epoch}


def history(query: Json) -> Json:
    end = query["ended_at"] or time.time()
    ends = [boundary["at"] for boundary in as_of_now(query)["boundaries"]]
    empty = query["windows"]["run"]["end_to_end"] is None
    begin = max(query["started_at"], end - HISTORY_S)
    seconds = [] if empty else range(math.ceil(begin), math.floor(end))
    # Rows that arrive at an epoch boundary wait for the next epoch.
    rows = [second_of_life(second, any(abs(second - end) <= 1 for end in ends)) for second in seconds]
    keys = ("p50_ms", "p99_ms", "p999_ms", "max_ms", "rows_in", "rows_out", "lag_rows")
    return {
        "at": [float(second) for second in seconds],
        **{key: [row[key] for row in rows] for key in keys},
        "heatmap": {"bounds_ms": BOUNDS_MS, "counts": [row["counts"] for row in rows]},
    }


@lru_cache(maxsize=4000)
def second_of_life(second: int, at_boundary: bool) -> Json:
    dice = random.Random(second)
    struck = second % 97 < 2  # by a garbage collection, say
    rows = 4_000 if at_boundary else int(12_300 * (1 + 0.06 * math.sin(second / 60)) + dice.gauss(0, 90))
    p50 = 5.4 * (1 + 0.1 * math.sin(second / 47) + 0.04 * math.sin(second / 11) + dice.gauss(0, 0.02))
    p99 = (150 if at_boundary else 70 if struck else 24) * math.exp(dice.gauss(0, 0.12))
    p999 = p99 * math.exp(abs(dice.gauss(0.75, 0.22)))
    # Most rows are typical, one in a hundred is slow, one in a thousand very slow.
    humps = [(0.985, p50, 0.33), (0.014, p99, 0.35), (0.001, p999, 0.3)]

    def below(bound: float) -> float:
        return sum(share * 0.5 * (1 + math.erf(math.log(bound / mid) / width / 1.414)) for share, mid, width in humps)

    shares = [below(bound) for bound in BOUNDS_MS] + [1.0]
    counts = [max(0.0, rows * (share - before)) for share, before in zip(shares, [0.0, *shares], strict=False)]
    return {
        "p50_ms": p50,
        "p99_ms": p99,
        "p999_ms": p999,
        "max_ms": p999 * 1.3,
        "rows_in": rows,
        "rows_out": rows + int(dice.gauss(0, 40)),
        "lag_rows": 2_400 if at_boundary else max(0, int(14 + dice.gauss(0, 5))),
        "counts": [int(number + dice.random() * 0.6) for number in counts],
    }


THREE_FINDINGS = [
    {
        "code": "TAILRACE_HOT_PARTITION",
        "severity": "warning",
        "title": "Partition payments/3 gets 71 % of the rows",
        "detail": "8,761 of 12,340 rows/s in the last 10 s; its p99 is 295 ms, the others' 45 ms",
        "fix": "Spread the keys: most of these rows have one key. Use a key with more values, or a suffix.",
        "line": None,
    },
    {
        "code": "TAILRACE_CPU_BUSY",
        "severity": "warning",
        "title": "Executor 1 has no free core",
        "detail": "its CPU load is 93 % in the last 10 s; rows wait for a core, which shows in p99",
        "fix": "Give the executor more cores, or move other work off the machine.",
        "line": None,
    },
    {
        "code": "TAILRACE_SHORT_EPOCHS",
        "severity": "note",
        "title": "Epochs of 60 s pause the query often",
        "detail": "10 boundaries in the last ten minutes, 253 ms each: p99.9 is theirs",
        "fix": 'Longer epochs pause less often: .trigger(realTime="5 minutes").',
        "line": None,
    },
]


def lively_monitor() -> SyntheticMonitor:
    return SyntheticMonitor(make_query("fraud"), make_query("alerts", status="lagging", hot=None, findings=[]))


if __name__ == "__main__":
    from tailrace.dashboard import serve

    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=4050)
    with serve(lively_monitor(), port=parser.parse_args().port) as dashboard:
        print(dashboard.url)
        threading.Event().wait()
