"""Python workers that are there before the first epoch, in an application under `tailrace run`."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession
from pyspark.sql.udf import UserDefinedFunction

from tailrace._spark.plugin import WARM_WORKERS_CLASS, jvm_object
from tailrace._spark.settings import value_of
from tailrace._spark.slots import offered_slots
from tailrace.supervise.run_folder import is_supervised

KEY = "spark.tailrace.warmup.pythonWorkers"
WITHIN_MS = 30_000

logger = logging.getLogger("tailrace")


def warm_workers(spark: SparkSession) -> int:
    """Start a worker for each task slot if enabled, and return how many started. Unused workers exit after a minute."""
    asked = value_of(spark, KEY) or str(is_supervised())
    slots = offered_slots(spark) if asked.lower() == "true" else None
    if not slots:
        return 0
    try:
        function = UserDefinedFunction(lambda: None)._judf.func()
        warm = jvm_object(spark.sparkContext, WARM_WORKERS_CLASS)
        return int(warm.start(spark.sparkContext._jsc.sc(), function, slots, WITHIN_MS))
    except Exception:
        # The task that needs the worker will report the problem.
        logger.debug("Python workers could not be started in advance", exc_info=True)
        return 0
