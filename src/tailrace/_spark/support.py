"""The plugin's support registry, read from its jar: what can run in Real-Time Mode, and what to do about the rest."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from tailrace._spark.java import require_java
from tailrace._spark.plugin import plugin_jar, spark_jars

PRINTER_CLASS = "tailrace.support.PrintRegistry"


@dataclass(frozen=True)
class Support:
    """One operation or sink; `group` is empty for what a user never writes."""

    group: str
    name: str
    class_name: str
    supported: bool
    note: str = ""
    reason: str = ""
    remedy: str = ""


def support_registry() -> list[Support]:
    return [Support(**row) for row in printed_by(PRINTER_CLASS)]


def printed_by(main_class: str) -> list[dict[str, Any]]:
    """What a class of the plugin prints as JSON, in a JVM of its own."""
    classpath = os.pathsep.join([str(plugin_jar()), str(spark_jars() / "*")])
    command = [require_java().command, "-cp", classpath, main_class]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows
