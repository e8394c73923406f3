"""Task slots, as Spark's own status counts them."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import SparkSession

# If a cluster does not announce its number of executors, they register one after the other.
SETTLED_AFTER_S, PATIENCE_S = 1.0, 10.0


def busy_slots(spark: SparkSession) -> int:
    """The number of running tasks, including those of canceled jobs."""
    return sum(int(executor.activeTasks()) for executor in _executors(spark))


def canceled_tasks(spark: SparkSession) -> dict[str, int]:
    """The number of tasks that still run though their job was canceled, by executor; empty if there are none."""
    tracker = spark.sparkContext.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    wanted = sum(stage.numActiveTasks for stage in stages if stage is not None)
    running = {str(executor.id()): int(executor.activeTasks()) for executor in _executors(spark)}
    # Spark does not tell which tasks of an executor were canceled, only how many tasks its live stages have.
    return {executor: count for executor, count in running.items() if count} if sum(running.values()) > wanted else {}


def free_slots(spark: SparkSession) -> int:
    return _registered_slots(spark) - busy_slots(spark)


def offered_slots(spark: SparkSession) -> int | None:
    """How many tasks can run at once; None if it is not configured and no executor has registered yet.

    Executors take a moment to register, so requested ones count as well.
    """
    if is_local(str(spark.sparkContext.master)):
        return _registered_slots(spark)
    asked = _asked_slots(spark)
    there = _registered_slots(spark)
    return max(there, asked) if asked else _settled_slots(spark, there) or None


def is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _asked_slots(spark: SparkSession) -> int:
    conf = spark.sparkContext.getConf()
    per_task = int(conf.get("spark.task.cpus", "1"))
    per_executor = int(conf.get("spark.executor.cores", "0"))
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return int(conf.get("spark.dynamicAllocation.maxExecutors", "0")) * (per_executor // per_task)
    if cores := int(conf.get("spark.cores.max", "0")):
        executors = cores // per_executor if per_executor else 1
        return executors * ((per_executor or cores) // per_task)
    return int(conf.get("spark.executor.instances", "0")) * (per_executor // per_task)


def _settled_slots(spark: SparkSession, there: int) -> int:
    """The slots of the registered executors, once no more register."""
    deadline = time.monotonic() + PATIENCE_S
    since = time.monotonic()
    while time.monotonic() < deadline and (there == 0 or time.monotonic() - since < SETTLED_AFTER_S):
        time.sleep(0.1)
        if (now := _registered_slots(spark)) != there:
            there, since = now, time.monotonic()
    return there


def _registered_slots(spark: SparkSession) -> int:
    per_task = int(spark.sparkContext.getConf().get("spark.task.cpus", "1"))
    return sum(int(executor.totalCores()) // per_task for executor in _executors(spark))


def _executors(spark: SparkSession) -> list[Any]:
    active_only = True
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(active_only)
    return [executors.apply(position) for position in range(executors.size())]
