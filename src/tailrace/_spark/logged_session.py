"""Starting Spark with the JVM's output in a log file instead of the user's terminal."""

from __future__ import annotations

import logging
from pathlib import Path

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tailrace._process.interrupts import interrupts_deferred
from tailrace._spark.session_builder import spark_conf
from tailrace.errors import TailraceError


def start_with_log(builder: SparkSession.Builder, log: Path) -> SparkSession:
    """Create the builder's session and send everything the JVM prints to `log`.

    A JVM that already runs keeps its output.
    """
    _log_interrupted_calls_to(log)
    try:
        if SparkContext._gateway is None:
            with log.open("ab") as output, interrupts_deferred():
                gateway = launch_gateway(spark_conf(builder), {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
                SparkContext._ensure_initialized(gateway=gateway)
        return builder.getOrCreate()
    except TailraceError:
        raise
    except Exception as failure:
        master = builder._options.get("spark.master", "its master")
        reason = next(iter(str(failure).splitlines()), repr(failure))
        raise TailraceError(
            "TAILRACE_SPARK_NOT_STARTED", f"Spark does not start on {master}: {reason}", f"read its log: {log}"
        ) from None


def _log_interrupted_calls_to(log: Path) -> None:
    """Log to `log` what Py4J reports of a call that Ctrl-C interrupted: an error with a stack trace.

    Py4J uses the root logger, which would write to the terminal if it had no handler.
    """
    logging.getLogger().addHandler(logging.FileHandler(log, delay=True))
