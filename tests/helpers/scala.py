"""Scala that only tests need, compiled by the compiler inside PySpark."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tailrace._spark.java import require_java
from tailrace._spark.plugin import plugin_jar, spark_jars
from tests.helpers.tree import ROOT

SOURCES = Path(__file__).parent.parent / "jvm"
COMPILED = ROOT / "build" / "tests-jvm"


def compiled_jar(sources: Path = SOURCES) -> Path:
    """The files of tests/jvm, or of a folder in it, as one jar. It is kept until they or the plugin change."""
    files = sorted(sources.glob("*.scala"))
    state = hashlib.sha256(plugin_jar().read_bytes())
    for file in files:
        state.update(file.name.encode() + b"\0" + file.read_bytes())
    jar = COMPILED / f"{state.hexdigest()[:16]}.jar"
    if not jar.exists():
        COMPILED.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=COMPILED) as folder:
            # At once, because another process of the tests may be doing the same.
            _compile(files, Path(folder)).replace(jar)
    return jar


def _compile(files: list[Path], folder: Path) -> Path:
    classes = folder / "classes"
    classes.mkdir()
    classpath = os.pathsep.join([str(plugin_jar()), str(spark_jars() / "*")])
    # A few files compile before optimizing the compiler would pay off.
    java = [require_java().command, "-Xss8m", "-XX:TieredStopAtLevel=1", "-cp", classpath]
    command = [*java, "scala.tools.nsc.Main", "-usejavacp", "-d", str(classes), *map(str, files)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return Path(shutil.make_archive(str(folder / "tests"), "zip", classes))
