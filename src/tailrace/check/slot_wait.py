"""`start()` waits until tasks of stopped queries have released the task slots that the new query needs.

`StreamingQuery.stop()` cancels a query's jobs and returns while their tasks may still run. Spark does not count those
tasks when it admits the next real-time query, which could then wait for a slot until its epoch ends.
"""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from tailrace._spark.plugin import jvm_object
from tailrace._spark.settings import required_value_of
from tailrace._spark.slots import canceled_tasks, free_slots
from tailrace.check.slots import ended_queries
from tailrace.errors import NotReadyError

WAIT_KEY = "spark.tailrace.start.slotWait"
POLL_S = 0.05


def wait_for_slots(spark: SparkSession, needed: int | None) -> None:
    """Return as soon as `needed` slots are free, or no canceled task holds one.

    Raises a NotReadyError after spark.tailrace.start.slotWait. Tasks of jobs that still run are not waited for: the
    check counts the slots that other queries hold.
    """
    if needed is None:
        return
    wait_s = _wait_s(spark)
    deadline = time.monotonic() + wait_s
    while free_slots(spark) < needed and (held_by := canceled_tasks(spark)):
        if time.monotonic() > deadline:
            raise _not_released(held_by, needed, wait_s)
        time.sleep(POLL_S)


def _wait_s(spark: SparkSession) -> float:
    durations = jvm_object(spark.sparkContext, "org.apache.spark.network.util.JavaUtils")
    return float(durations.timeStringAsMs(required_value_of(spark, WAIT_KEY))) / 1000


def _not_released(held_by: dict[str, int], needed: int, wait_s: float) -> NotReadyError:
    where = ", ".join(f"{count} on executor {executor}" for executor, count in held_by.items())
    names = ended_queries()
    whose = f"a stopped query ({', '.join(names)})" if names else "a stopped query or a canceled job"
    return NotReadyError(
        "TAILRACE_SLOTS_NOT_RELEASED",
        f"tasks of {whose} still hold their slots after {wait_s:g} s ({where}), and the new query needs {needed}.",
        f"start it again later, add slots, or set {WAIT_KEY} to a longer time. A task that ignores its cancellation "
        "usually waits inside a Python function or for a Kafka topic that was deleted.",
    )
