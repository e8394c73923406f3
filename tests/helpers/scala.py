"""Scala that only tests need, compiled by the compiler inside PySpark."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tailrace._spark.java import require_java
from tailrace._spark.plugin import plugin_jar, spark_jars

SOURCES = Path(__file__).parent.parent / "jvm"


def compile_to_jar(folder: Path, sources: Path = SOURCES) -> Path:
    """The files of tests/jvm, or of a folder in it, as one jar."""
    classes = folder / "classes"
    classes.mkdir()
    classpath = os.pathsep.join([str(plugin_jar()), str(spark_jars() / "*")])
    # A few files compile before optimizing the compiler would pay off.
    java = [require_java().command, "-Xss8m", "-XX:TieredStopAtLevel=1", "-cp", classpath]
    command = [*java, "scala.tools.nsc.Main", "-usejavacp"]
    files = sorted(map(str, sources.glob("*.scala")))
    answer = subprocess.run([*command, "-d", str(classes), *files], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    archive = Path(shutil.make_archive(str(folder / "tests"), "zip", classes))
    return archive.rename(folder / "tests.jar")
