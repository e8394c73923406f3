"""`tailrace size`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from tailrace._kafka.cluster import Servers, cluster_of
from tailrace._process.console import console
from tailrace.check.description import QueryShape
from tailrace.cli.kafka_config import KafkaConfig
from tailrace.contract.snapshot import QueryFigures
from tailrace.dashboard.top import Feed
from tailrace.size import (
    Load,
    bad_size,
    load_of_run,
    parse_stages,
    shape_of_run,
    shape_of_topic,
    size_of,
)


def size(
    stages: Annotated[str | None, typer.Option(help="Partitions of the source, then of each shuffle: 8,20,20.")] = None,
    topic: Annotated[str | None, typer.Option(help="Read the number of source partitions from the broker.")] = None,
    bootstrap_servers: Annotated[str | None, typer.Option(help="The Kafka cluster that has the topic.")] = None,
    kafka_config: KafkaConfig = None,
    shuffle_partitions: Annotated[
        list[int] | None, typer.Option(help="With --topic: partitions of a shuffle. May be repeated.")
    ] = None,
    dashboard: Annotated[
        str | None, typer.Option(help="Take missing figures from the application behind this dashboard.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="With --dashboard: the query with this name or id.")] = None,
    rate: Annotated[float | None, typer.Option(help="Rows that arrive per second.")] = None,
    throughput: Annotated[
        float | None, typer.Option(help="Rows per second the query can process, measured with a backlog.")
    ] = None,
    measured_cores: Annotated[float | None, typer.Option(help="CPU cores the throughput was measured on.")] = None,
    keys: Annotated[int | None, typer.Option(help="Number of keys with state.")] = None,
    state_bytes_per_key: Annotated[
        float | None, typer.Option(help="Bytes of a key and its value together.", show_default="--row-bytes, or 100")
    ] = None,
    row_bytes: Annotated[float | None, typer.Option(help="Bytes of a row.")] = None,
    boundary_ms: Annotated[
        float | None,
        typer.Option(help="Pause at an epoch boundary, in milliseconds.", show_default="an estimate"),
    ] = None,
    utilization: Annotated[float, typer.Option(help="Target utilization of the cores, from 0 to 1.")] = 0.5,
    cores_per_executor: Annotated[int, typer.Option(help="Task slots per executor.")] = 4,
    recovery_s: Annotated[float, typer.Option(help="Seconds a replay after a failure may take.")] = 60.0,
    plot: Annotated[
        Path | None, typer.Option(help="Plot the cost of the checkpoint interval, as .png or .svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Compute the slots, cores and memory a query needs, and how often it should commit."""
    cluster = cluster_of(bootstrap_servers, kafka_config)
    _refuse_contradictions(stages, topic, cluster, shuffle_partitions, dashboard, query)
    run = _run_behind(dashboard, query) if dashboard else None
    shape = _shape(stages, topic, cluster, shuffle_partitions, run)
    by_hand: dict[str, Any] = {
        "rows_per_s": rate,
        "throughput_rows_per_s": throughput,
        "throughput_cores": measured_cores,
        "throughput_is_lower_bound": None if throughput is None else False,
        "keys": keys,
        "state_bytes_per_key": state_bytes_per_key,
        "row_bytes": row_bytes,
        "boundary_ms": boundary_ms,
        "utilization": utilization,
        "cores_per_executor": cores_per_executor,
        "max_recovery_s": recovery_s,
    }
    known = load_of_run(run) if run else Load()
    load = dataclasses.replace(known, **{name: value for name, value in by_hand.items() if value is not None})
    sizing = size_of(shape, load)
    drawn = sizing.plot(plot) if plot else None
    print(sizing.to_json(indent=2) if as_json else sizing)
    if drawn:
        console.print(f"Plot: {drawn}", soft_wrap=True)


def _refuse_contradictions(
    stages: str | None,
    topic: str | None,
    cluster: Servers | None,
    shuffle_partitions: list[int] | None,
    dashboard: str | None,
    query: str | None,
) -> None:
    if stages and topic:
        raise typer.BadParameter("--stages and --topic both define the stages: give only one of them.")
    if not (stages or topic or dashboard):
        raise typer.BadParameter("define the stages: --stages 8,20, or --topic NAME, or --dashboard URL.")
    if topic and not cluster:
        raise typer.BadParameter("--topic needs --bootstrap-servers or --kafka-config.")
    if not topic and (cluster or shuffle_partitions):
        raise typer.BadParameter("--bootstrap-servers, --kafka-config and --shuffle-partitions need --topic.")
    if query and not dashboard:
        raise typer.BadParameter("--query needs --dashboard.")


def _shape(
    stages: str | None,
    topic: str | None,
    cluster: Servers | None,
    shuffle_partitions: list[int] | None,
    run: QueryFigures | None,
) -> QueryShape:
    if stages:
        return parse_stages(stages)
    if topic and cluster:
        return shape_of_topic(cluster, topic, shuffle_partitions or [])
    assert run is not None
    return shape_of_run(run)


def _run_behind(dashboard: str, wanted: str | None) -> QueryFigures:
    """The query that the options select."""
    runs = Feed(dashboard).snapshot().queries
    found = [
        run for run in runs if wanted in (run.name, run.id, run.run_id) or (wanted is None and run.ended_at is None)
    ]
    if len(found) == 1:
        return found[0]
    names = ", ".join(run.label for run in runs) or "none"
    raise bad_size(
        f"the options match {len(found)} queries of {dashboard}; it has: {names}.",
        "name one with --query, by its name or its id; or give the figures by hand.",
    )
