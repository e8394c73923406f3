"""Task slots, as Spark's own status counts them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def busy_slots(spark: SparkSession) -> int:
    """How many tasks run now, also those of jobs that were cancelled."""
    return sum(int(executor.activeTasks()) for executor in _executors(spark))


def free_slots(spark: SparkSession) -> int:
    return _registered_cores(spark) - busy_slots(spark)


def offered_slots(spark: SparkSession) -> int | None:
    """How many tasks can run at once; none if nobody has said and no executor has come yet.

    Executors take a moment to register, so what was asked for counts as well.
    """
    conf = spark.sparkContext.getConf()
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        most = conf.get("spark.dynamicAllocation.maxExecutors")
        asked = int(most) * int(conf.get("spark.executor.cores", "1")) if most else 0
    else:
        instances = int(conf.get("spark.executor.instances", "0")) * int(conf.get("spark.executor.cores", "1"))
        asked = int(conf.get("spark.cores.max", "0")) or instances
    cores = max(_registered_cores(spark), asked)
    return cores // int(conf.get("spark.task.cpus", "1")) or None


def _registered_cores(spark: SparkSession) -> int:
    return sum(int(executor.totalCores()) for executor in _executors(spark))


def _executors(spark: SparkSession) -> list[Any]:
    active_only = True
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(active_only)
    return [executors.apply(position) for position in range(executors.size())]
