"""Starting Spark's JVM with its output in a log file instead of the user's terminal."""

from __future__ import annotations

from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession


def send_jvm_output_to(log: Path, builder: SparkSession.Builder) -> None:
    """Start the JVM for this builder now, with everything it prints going to `log`.

    A JVM that already runs keeps its output where it is.
    """
    if SparkContext._gateway is not None:
        return
    conf = SparkConf()
    for key, value in builder._options.items():
        conf.set(key, str(value))
    with log.open("ab") as output:
        gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
