"""Run the Scala unit tests of jvm/test in one JVM.

The suites are compiled against the plugin's jar, PySpark's jars and the Kafka connector. The classes are kept
until a source or the plugin changes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import build
from tailrace._spark.maven import KAFKA_CONNECTOR, JarSet, resolve
from tailrace.errors import TailraceError

SOURCES = build.ROOT / "jvm" / "test"
CLASSES = build.ROOT / "build" / "jvm-test"
RUNNER = "tailrace.RunSuites"
LOGGING = SOURCES / "log4j2.properties"
MUNIT = JarSet(
    name="munit", coordinates=("org.scalameta:munit_2.13:1.2.4",), transitive=True, variable="TAILRACE_MUNIT"
)
# For all suites together; a test that hangs must not hold the build.
TIMEOUT_S = 300


def sources() -> list[Path]:
    return sorted(SOURCES.rglob("*.scala"))


def suites(pattern: str) -> list[str]:
    """The class names of the suites: one for each file `…Suite.scala`."""
    names = []
    for file in sources():
        package = re.search(r"^package ([\w.]+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        if file.stem.endswith("Suite") and package is not None:
            names.append(f"{package[1]}.{file.stem}")
    return [name for name in names if pattern.lower() in name.lower()]


def classpath() -> list[Path]:
    return [build.JAR, *resolve(KAFKA_CONNECTOR), *resolve(MUNIT), build.spark_jars() / "*"]


def digest() -> str:
    """What the compiled suites depend on."""
    state = hashlib.sha256(repr((build.built_digest(build.JAR), MUNIT.pinned(), build.SCALAC_FLAGS)).encode())
    for file in sources():
        state.update(str(file.relative_to(SOURCES)).encode() + b"\0" + file.read_bytes())
    return state.hexdigest()[:16]


def compiled(jars: str) -> Path:
    """The folder with the compiled suites."""
    folder = CLASSES / digest()
    if folder.is_dir():
        return folder
    begun = time.monotonic()
    shutil.rmtree(CLASSES, ignore_errors=True)
    partial = CLASSES / f"{folder.name}.{os.getpid()}.partial"
    partial.mkdir(parents=True)
    java = [build.java_command(), "-Xss8m", "-XX:TieredStopAtLevel=1", "-cp", jars, "scala.tools.nsc.Main"]
    arguments = ["-usejavacp", *build.SCALAC_FLAGS, "-d", str(partial), *map(str, sources())]
    answer = subprocess.run([*java, *arguments], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise build.BuildError(f"the unit tests do not compile:\n{answer.stdout}{answer.stderr}")
    partial.replace(folder)
    print(f"jvm/test: compiled in {time.monotonic() - begun:.0f} s")
    return folder


def command() -> list[str]:
    """Starts a JVM with the compiled suites; the main class and its arguments follow."""
    build.build()
    jars = os.pathsep.join(map(str, classpath()))
    java = [build.java_command(), "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={LOGGING}"]
    return [*java, "-cp", os.pathsep.join([str(compiled(jars)), jars])]


def run(pattern: str) -> int:
    selected = suites(pattern)
    if not selected:
        raise build.BuildError(f"no suite has '{pattern}' in its name")
    java = command()
    environment = os.environ if sys.stdout.isatty() else {**os.environ, "NO_COLOR": "1"}
    try:
        return subprocess.run([*java, RUNNER, *selected], check=False, timeout=TIMEOUT_S, env=environment).returncode
    except subprocess.TimeoutExpired:
        raise build.BuildError(f"the tests did not end within {TIMEOUT_S} s") from None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="", help="only suites with this in their name")
    parser.add_argument("--command", metavar="CLASS", help="print the command that runs this class, as JSON")
    arguments = parser.parse_args()
    try:
        if arguments.command:
            print(json.dumps([*command(), arguments.command]))
            return 0
        return run(arguments.pattern)
    except (build.BuildError, TailraceError) as failure:
        print(f"jvm/test: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
