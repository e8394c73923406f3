"""The plugin's support registry, read from its jar: what can run in Real-Time Mode, and what to do about the rest."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass

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
    classpath = os.pathsep.join([str(plugin_jar()), str(spark_jars() / "*")])
    command = [require_java().command, "-cp", classpath, PRINTER_CLASS]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return [Support(**row) for row in json.loads(answer.stdout)]
