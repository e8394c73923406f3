"""Queries to be measured, and what is found in their figures."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import functions
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace.contract.snapshot import Distribution
from tailrace.loadtest import LoadTest
from tailrace.results import Latency
from tests.helpers.pipeline import Pipeline

F: Any = functions


def fed_by(pipeline: Pipeline, rate: int = 100) -> LoadTest:
    return LoadTest(
        bootstrap_servers=pipeline.servers, input_topic=pipeline.input, output_topic=pipeline.output, rate=rate
    )


def distribution(report: Latency, figure: str) -> Distribution:
    found = report.figure(figure)
    assert found is not None, f"nothing was recorded for {figure}"
    return found


def recorded(report: Latency, figure: str) -> int:
    found = report.figure(figure)
    return found.count if found else 0


def reported(query: StreamingQuery, rows: int) -> Latency | None:
    report = tailrace.latency(query, "run")
    return report if report.to_dict()["windows"]["run"]["rows_out"] >= rows else None


def delivered(query: StreamingQuery, rows: int, window: str = "run") -> Latency | None:
    """The report, when it has so many rows and is calm."""
    report = tailrace.latency(query, window)
    enough = recorded(report, "end_to_end") >= rows
    return report if enough and report.status == "running" else None


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
