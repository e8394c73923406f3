"""`foreach` whose `open()` returns False, in executors of their own, where Spark repeats a task that fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from tests.helpers import refused_epochs
from tests.helpers.pipeline import Pipeline

# Executors of a cluster cannot import the tests; what they run travels as it is.
cloudpickle.register_pickle_by_value(sys.modules[refused_epochs.__name__])  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def spark(new_session: Callable[[str], SparkSession]) -> SparkSession:
    return new_session("local-cluster[2,3,1024]")


def test_refused_rows_are_dropped_and_committed(pipeline: Pipeline, tmp_path: Path) -> None:
    refused_epochs.check_refused_epochs(pipeline, tmp_path)
