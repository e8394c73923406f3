"""The Scala plugin's jar and the names of its entry points."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from tailrace.errors import TailraceError

PLUGIN_CLASS = "tailrace.TailracePlugin"
EXTENSION_CLASS = "tailrace.TailraceExtensions"
LISTENER_CLASS = "org.apache.spark.sql.tailrace.epoch.QueryEvents"
LIVE_FIGURES_CLASS = "org.apache.spark.sql.tailrace.metrics.LiveFigures"
DROP_DUPLICATES_CLASS = "org.apache.spark.sql.tailrace.operators.state.DropDuplicates"
DRAINS_CLASS = "org.apache.spark.sql.tailrace.epoch.drain.Drains"
TESTING_PACKAGE = "org.apache.spark.sql.tailrace.testing"
WARM_WORKERS_CLASS = "org.apache.spark.sql.tailrace.operators.python.WorkerWarmup"
SETTINGS_CLASS = "org.apache.spark.sql.tailrace.conf.TailraceConf"
CLIENT_VERSION_KEY = "spark.tailrace.clientVersion"


def is_loaded(context: SparkContext) -> bool:
    """Whether the application runs with the plugin; it can only be loaded when Spark starts."""
    return PLUGIN_CLASS in (context.getConf().get("spark.plugins", "") or "").split(",")


def jvm_object(context: SparkContext, class_name: str) -> Any:
    """A class or a Scala object in the driver's JVM, by its full name."""
    # Not part by part: at each dot the JVM would look for a class of that name in all of Spark's jars.
    return getattr(context._jvm, class_name)


def plugin_jar() -> Path:
    jar = Path(str(resources.files(__name__))) / "tailrace-plugin.jar"
    if not jar.exists():
        raise TailraceError(
            "TAILRACE_PLUGIN_MISSING",
            f"the plugin's jar is not at {jar}.",
            "in a source checkout run `make plugin`; otherwise reinstall: pip install --force-reinstall tailrace",
        )
    return jar


def spark_jars() -> Path:
    """The folder with Spark's own jars, inside the installed PySpark."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"
