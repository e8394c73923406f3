"""A rehearsal: an application on servers of its own, under load for some seconds."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

from pyspark.sql.streaming.query import StreamingQuery

from tailrace.loadtest.load_test import LoadTest
from tailrace.loadtest.query import raise_if_ended
from tailrace.loadtest.report import LatencyReport

OUTPUT_WITHIN_S = 300
PATIENCE_S = 60


def rehearse(
    servers: Callable[[], AbstractContextManager[dict[str, str]]],
    measure: Callable[..., object],
    *,
    rate: float = 200,
) -> None:
    """The main function of a program that rehearses an application.

        python run.py --seconds 20 --rate 200   # measure
        python run.py tailrace check app.py     # any other command, with the servers running

    :param servers: starts the servers, and gives the environment variables that tell the application where they are.
    :param measure: runs the application, called with `seconds` and `rate`; what it returns is printed.
    :param rate: the default number of records per second.
    """
    parser = argparse.ArgumentParser(
        description="Run the application for some seconds on servers of its own, under load, and print the figures."
    )
    parser.add_argument("--seconds", type=float, default=20, help="seconds to measure (20)")
    parser.add_argument("--rate", type=float, default=rate, help=f"records per second ({rate:g})")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="run this command instead, with the servers running")
    options = parser.parse_args()
    with servers() as environment:
        os.environ.update(environment)
        if options.command:
            sys.exit(subprocess.run(options.command, check=False).returncode)
        print(measure(seconds=options.seconds, rate=options.rate))


def measure_query(query: StreamingQuery, load: LoadTest, *, seconds: float, warm_up: int) -> LatencyReport:
    """Wait until `warm_up` results are there, then measure. Raises the query's error if it ends meanwhile."""
    check = raise_if_ended(query)
    with load:
        load.wait_for_output(timeout_s=OUTPUT_WITHIN_S, records=warm_up, check=check)
        return load.measure(seconds=seconds, patience_s=PATIENCE_S, check=check)
