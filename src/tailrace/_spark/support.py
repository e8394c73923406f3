"""The plugin's support registry, read from its jar: what can run in Real-Time Mode, and what to do about the rest."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from tailrace._spark.java import require_java
from tailrace._spark.plugin import plugin_jar, spark_jars
from tailrace.contract.codec import decode
from tailrace.contract.support import SupportEntry

PRINTER_CLASS = "tailrace.support.PrintRegistry"


def support_registry() -> list[SupportEntry]:
    return list(decode(tuple[SupportEntry, ...], printed_by(PRINTER_CLASS)))


def printed_by(main_class: str) -> list[dict[str, Any]]:
    """Run a class of the plugin in its own JVM, and return the JSON that it prints."""
    classpath = os.pathsep.join([str(plugin_jar()), str(spark_jars() / "*")])
    command = [require_java().command, "-cp", classpath, main_class]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows
