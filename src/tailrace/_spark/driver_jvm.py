"""The options of the driver's JVM. The driver plans every epoch, so its garbage collection delays every query."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from typing import Any

from pyspark import SparkContext

OPTIONS_KEY = "spark.driver.extraJavaOptions"
# It does less work per memory write than G1, Java's default for servers: docs/benchmarks/epoch-boundaries.md.
COLLECTOR = "-XX:+UseParallelGC"

_ANY_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
# Other places that a JVM takes options from. It does not start with two collectors.
_VARIABLES = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_OPTIONS_KEYS = (OPTIONS_KEY, "spark.driver.defaultJavaOptions")

logger = logging.getLogger("tailrace")
_warned = False


def driver_options(conf: Mapping[str, str]) -> dict[str, str]:
    """The user's options for the driver's JVM, plus ours unless the user has chosen a collector."""
    if _names_collector(conf):
        return {}
    return {OPTIONS_KEY: f"{conf.get(OPTIONS_KEY, '')} {COLLECTOR}".strip()}


def warn_if_too_late(conf: Mapping[str, str]) -> None:
    """Warn if the JVM already runs, because it takes no more options then."""
    global _warned
    jvm: Any = SparkContext._jvm
    arguments = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    if _warned or any(_ANY_COLLECTOR.match(str(argument)) for argument in arguments) or _users_collector(conf):
        return
    _warned = True
    logger.warning(
        "The driver's JVM was started before tailrace.configure, without %s, which shortens the pause between epochs. "
        "With spark-submit: --driver-java-options '%s'.",
        COLLECTOR,
        COLLECTOR,
    )


def _names_collector(conf: Mapping[str, str]) -> bool:
    texts = [conf.get(key, "") for key in _OPTIONS_KEYS] + [os.environ.get(name, "") for name in _VARIABLES]
    return any(_ANY_COLLECTOR.search(text) for text in texts)


def _users_collector(conf: Mapping[str, str]) -> bool:
    """True if the user chose another collector."""
    return any(found != COLLECTOR for key in _OPTIONS_KEYS for found in _ANY_COLLECTOR.findall(conf.get(key, "")))
