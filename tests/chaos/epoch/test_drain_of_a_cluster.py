"""A drain on separate executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import tailrace
from tailrace import EmbeddedKafka
from tailrace._process.machine_load import stretched
from tests.helpers.pipeline import Pipeline, has_counted
from tests.helpers.waiting import until

# No test waits for its end.
EPOCH = "10 minutes"


# Separates an epoch that was ended from one that was waited for.
SOON_S = 300


def test_executors_of_a_cluster_learn_of_it(
    new_session: Callable[[str], SparkSession], kafka: EmbeddedKafka, checkpoint: Path
) -> None:
    pipeline = Pipeline(new_session("local-cluster[2,3,1024]"), kafka, checkpoint)
    with pipeline.collect() as out:
        for run in (1, 2):
            pipeline.send(range(20 * (run - 1), 20 * run), keys=1)
            with pipeline.running(pipeline.counts(), epoch=EPOCH) as query:
                until(has_counted(out, 20 * run), f"{20 * run} rows counted")
                tailrace.drain(query, timeout_s=stretched(SOON_S))
        assert Counter(row["n"] for row in out.rows()) == Counter(range(1, 41))
