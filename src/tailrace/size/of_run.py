"""A query's stages and load, from the figures of one of its runs."""

from __future__ import annotations

from tailrace.check.description import QueryShape
from tailrace.contract.codec import encode
from tailrace.contract.query_description import Operator, Stage
from tailrace.contract.snapshot import QueryFigures, QueryStatus, StageFigures
from tailrace.size.load import Load


def shape_of_run(query: QueryFigures) -> QueryShape:
    epoch_s = query.epoch.duration_s
    sinks = [stage.sink for stage in query.stages if stage.sink]
    return QueryShape(
        stages=tuple(_stage_of_run(stage, has_state=bool(query.state)) for stage in query.stages),
        sink=sinks[-1] if sinks else None,
        epoch_ms=None if epoch_s is None else round(epoch_s * 1000),
    )


def _stage_of_run(stage: StageFigures, *, has_state: bool) -> Stage:
    # A run does not report which operator keeps the state. It is one behind a shuffle by its key.
    keeps_state = has_state and bool(stage.inputs)
    return Stage(
        number=stage.stage,
        inputs=stage.inputs,
        sources=stage.sources,
        operators=tuple(Operator(name, stateful=keeps_state) for name in stage.operators),
        tasks=len(stage.tasks) or None,
    )


def load_of_run(query: QueryFigures) -> Load:
    """The load that a run shows.

    Without a backlog, the rows read are the rows that arrive, and only a lower bound of the throughput. With one, the
    query reads as fast as it can, and the rate of arriving rows is unknown.
    """
    windows, lagging = query.windows, query.status is QueryStatus.LAGGING
    seen = windows["10s"].rows_in_per_s if lagging else max(window.rows_in_per_s for window in windows.values())
    return Load(
        rows_per_s=None if lagging else windows["1m"].rows_in_per_s or None,
        throughput_rows_per_s=seen or None,
        throughput_is_lower_bound=not lagging,
        keys=sum(state.rows for state in query.state) or None,
        boundary_ms=query.pause.median_ms or None if query.pause else None,
        boundary_parts_ms=encode(query.pause.parts_ms) if query.pause else None,
    )
