"""A query's stages and load from a run of it, in figures as `tailrace.latency(query).to_dict()` has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailrace.check.description import Operator, QueryShape, Stage
from tailrace.size.load import Load


def shape_of_run(query: Mapping[str, Any]) -> QueryShape:
    epoch_s, stages = query["epoch"]["duration_s"], query["stages"]
    sinks = [stage["sink"] for stage in stages if stage["sink"]]
    return QueryShape(
        stages=tuple(_stage_of_run(stage, has_state=bool(query["state"])) for stage in stages),
        sink=sinks[-1] if sinks else None,
        epoch_ms=None if epoch_s is None else round(epoch_s * 1000),
    )


def _stage_of_run(stage: Mapping[str, Any], *, has_state: bool) -> Stage:
    # Which operator it is that keeps the state is not told; it is behind a shuffle, by its key.
    keeps_state = has_state and bool(stage["inputs"])
    return Stage(
        number=stage["stage"],
        inputs=tuple(stage["inputs"]),
        sources=tuple(stage["sources"]),
        operators=tuple(Operator(name, stateful=keeps_state) for name in stage["operators"]),
        tasks=len(stage["tasks"]) or None,
    )


def load_of_run(query: Mapping[str, Any]) -> Load:
    """What the run shows of itself.

    Without a backlog one sees how much arrives, and only a lower bound of what the query can do. With one it reads as
    fast as it can, and how much arrives is not seen.
    """
    windows, lagging = query["windows"], query["status"] == "lagging"
    seen = windows["10s"]["rows_in_per_s"] if lagging else max(window["rows_in_per_s"] for window in windows.values())
    seam = query["seam"] or {"median_ms": None, "parts_ms": None}
    return Load(
        rows_per_s=None if lagging else windows["1m"]["rows_in_per_s"] or None,
        throughput_rows_per_s=seen or None,
        throughput_is_lower_bound=not lagging,
        keys=sum(state["rows"] for state in query["state"]) or None,
        boundary_ms=seam["median_ms"] or None,
        boundary_parts_ms=seam["parts_ms"],
    )
