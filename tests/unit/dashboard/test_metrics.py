"""The dashboard's metrics for Prometheus."""

from __future__ import annotations

import json
import re
import time
from importlib import resources

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from tailrace.dashboard import Dashboard
from tests.helpers.synthetic_monitor import SyntheticMonitor, dist, make_query, state
from tests.unit.dashboard.asking import ask, samples, value

# Metrics

METRICS = {
    "tailrace_rows_read",
    "tailrace_bad_records",
    "tailrace_rows_written",
    "tailrace_latency_seconds",
    "tailrace_stage_latency_seconds",
    "tailrace_partition_latency_seconds",
    "tailrace_lag_rows",
    "tailrace_epoch_number",
    "tailrace_epoch_boundary_pause_seconds",
    "tailrace_epoch_boundary_part_seconds",
    "tailrace_state_rows",
    "tailrace_state_memory_bytes",
    "tailrace_state_commit_seconds",
    "tailrace_gc_pause_max_seconds",
    "tailrace_cpu_load_ratio",
    "tailrace_findings",
    "tailrace_query_up",
}


def test_metrics_are_in_base_units(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    query = monitor.queries[0]
    query["windows"]["1m"]["end_to_end"] = {**(dist(5.0) or {}), "p99_ms": 48.0, "max_ms": 532.0}
    parts = {"finish": 100.0, "log": 20.0, "plan": 40.0, "launch": 52.0}
    query["boundaries"][-1] |= {"pause_ms": 212.0, "parts_ms": parts}
    query["ended_at"] = time.time()
    latency = {"query": "fraud", "figure": "end_to_end"}
    assert value(dashboard, "tailrace_latency_seconds", **latency, quantile="0.99") == pytest.approx(0.048)
    assert value(dashboard, "tailrace_latency_seconds", **latency, quantile="1") == pytest.approx(0.532)
    assert value(dashboard, "tailrace_rows_read_total", query="fraud") == query["windows"]["run"]["rows_in"]
    assert value(dashboard, "tailrace_epoch_boundary_pause_seconds", query="fraud") == pytest.approx(0.212)
    part = {"query": "fraud", "part": "plan"}
    assert value(dashboard, "tailrace_epoch_boundary_part_seconds", **part) == pytest.approx(0.04)
    assert value(dashboard, "tailrace_state_commit_seconds", query="fraud", operator="stateStoreSave") == 0.118
    assert value(dashboard, "tailrace_gc_pause_max_seconds", executor="1") == 0.022
    assert value(dashboard, "tailrace_cpu_load_ratio", executor="1") == 0.93
    assert value(dashboard, "tailrace_findings", query="fraud", code="TAILRACE_HOT_PARTITION") == 1


def test_metrics_are_all_that_were_promised_and_no_more(dashboard: Dashboard) -> None:
    text = ask(dashboard, "/metrics").body.decode()
    families = list(parse_text(text))
    assert {family.name for family in families} == METRICS
    assert all(family.documentation and family.samples for family in families)
    assert "run-of-fraud" not in text, "a run id would make a new series at each restart"


def test_openmetrics_where_it_is_asked_for(dashboard: Dashboard) -> None:
    plain = ask(dashboard, "/metrics")
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    answer = ask(dashboard, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    families = parse_openmetrics(answer.body.decode())  # type: ignore[no-untyped-call]
    assert {family.name for family in families} == METRICS
    assert ask(dashboard, "/metrics", accept="application/openmetrics-text; version=none").status == 200


def test_the_number_of_series_does_not_grow_with_the_partitions(
    dashboard: Dashboard, monitor: SyntheticMonitor
) -> None:
    query = make_query("wide", partitions=200, hot=150)
    monitor.queries = [query]
    of_partitions = [labels for name, labels in samples(dashboard) if name == "tailrace_partition_latency_seconds"]
    assert len(of_partitions) == 50 * 5
    assert any(("partition", "150") in labels for labels in of_partitions), "the worst one is missing"
    assert len([name for name, _ in samples(dashboard) if name == "tailrace_lag_rows"]) == 50


def test_nor_with_the_queries_that_were(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    ended = [make_query(f"old-{number}", status="ended", partitions=1, ran_s=9000 - number) for number in range(80)]
    monitor.queries = [*ended, make_query("new", ran_s=99_999)]
    up = {labels for name, labels in samples(dashboard) if name == "tailrace_query_up"}
    assert len(up) == 50
    assert frozenset({("query", "new")}) in up


def test_operators_of_one_kind_are_added_up(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    monitor.queries[0]["state"] = [state("dedupe", 10, 100, 5.0), state("dedupe", 7, 50, 9.0)]
    labels = {"query": "fraud", "operator": "dedupe"}
    assert value(dashboard, "tailrace_state_rows", **labels) == 17
    assert value(dashboard, "tailrace_state_memory_bytes", **labels) == 150
    assert value(dashboard, "tailrace_state_commit_seconds", **labels) == 0.009


def test_nothing_recorded_is_no_series(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    monitor.queries = [make_query("new", status="starting", empty=True, findings=[])]
    names = {name for name, _ in samples(dashboard)}
    assert "tailrace_latency_seconds" not in names
    assert value(dashboard, "tailrace_query_up", query="new") == 1
    assert value(dashboard, "tailrace_rows_read_total", query="new") == 0


def test_names_that_prometheus_would_trip_over(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    name = 'a "quoted\\name"\nof two lines {x="y"}'
    monitor.queries = [make_query(name)]
    assert value(dashboard, "tailrace_query_up", query=name) == 1


def test_a_query_without_a_name_has_its_id(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    monitor.queries = [make_query(None)]
    assert value(dashboard, "tailrace_query_up", query="id-of-unnamed") == 1


def test_the_grafana_example_shows_metrics_that_there_are(dashboard: Dashboard) -> None:
    example = json.loads((resources.files("tailrace.dashboard") / "grafana.json").read_text())
    data_source = next(one for one in example["templating"]["list"] if one["type"] == "datasource")
    assert data_source["query"] == "prometheus"
    there = {name for name, _ in samples(dashboard)}
    shown = set()
    for panel in example["panels"]:
        assert panel["datasource"]["uid"] == f"${{{data_source['name']}}}"
        for target in panel["targets"]:
            shown |= set(re.findall(r"tailrace_\w+", target["expr"]))
    assert shown == there
