"""Task slots, as Spark's own status counts them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def busy_slots(spark: SparkSession) -> int:
    """How many tasks run now, also those of jobs that were cancelled."""
    return sum(int(executor.activeTasks()) for executor in _executors(spark))


def free_slots(spark: SparkSession) -> int:
    return sum(int(executor.totalCores()) for executor in _executors(spark)) - busy_slots(spark)


def _executors(spark: SparkSession) -> list[Any]:
    active_only = True
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(active_only)
    return [executors.apply(position) for position in range(executors.size())]
