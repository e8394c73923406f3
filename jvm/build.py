"""Build the Tailrace plugin jar with the Scala compiler that ships inside PySpark.

Standard library only, so that it runs before anything of Tailrace is installed: from the wheel's
build hook, from `make`, and from the tests. Needs `pyspark` in the running interpreter and a Java
runtime; no sbt, no Maven, no network.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "jvm" / "src"
WORKER = ROOT / "jvm" / "worker"
# What goes into the jar as it is: the names under which Spark finds our data sources.
RESOURCES = ROOT / "jvm" / "resources"
# Types of libraries that the user brings: compiled against, and not part of the jar.
STUBS = ROOT / "jvm" / "stubs"
VERSION_FILE = ROOT / "src" / "tailrace" / "_version.py"
JAR = ROOT / "src" / "tailrace" / "_spark" / "plugin" / "tailrace-plugin.jar"

OWN_PACKAGES = ("tailrace/", "org/apache/spark/sql/tailrace/")
STAMP = "tailrace/build.properties"
SCALAC_FLAGS = ("-deprecation", "-feature", "-unchecked", "-Xlint", "-Wunused", "-Wdead-code", "-Werror", "-release:17")

OLDEST_JAVA = 17

# Zip cannot say "no time"; the earliest date it knows makes equal sources give equal bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)


class BuildError(Exception):
    """The plugin could not be built; the message says why and what to do."""


def tailrace_version() -> str:
    match = re.search(r'__version__ = "([^"]+)"', VERSION_FILE.read_text(encoding="utf-8"))
    if match is None:
        raise BuildError(f"no __version__ in {VERSION_FILE}")
    return match[1]


def spark_jars() -> Path:
    # Found, not imported: importing PySpark takes a second and can print warnings.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise BuildError("PySpark is not installed in this environment: pip install pyspark")
    return Path(spec.origin).parent / "jars"


def java_command() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise BuildError(f"no Java found: install a Java {OLDEST_JAVA} (or later) runtime, or set JAVA_HOME")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if version is None or int(version[1]) < OLDEST_JAVA:
        found = version[1] if version else "none"
        raise BuildError(f"{java} is Java {found}: install Java {OLDEST_JAVA} or later, or set JAVA_HOME")
    return java


def sources() -> list[Path]:
    return sorted(SOURCES.rglob("*.scala"))


def stubs() -> list[Path]:
    return sorted(STUBS.rglob("*.scala"))


def worker_modules() -> list[Path]:
    """The Python that executors run; it travels in the jar, so that they need no installation."""
    return sorted(WORKER.rglob("*.py"))


def resources() -> list[Path]:
    return sorted(path for path in RESOURCES.rglob("*") if path.is_file())


def digest(spark_version: str) -> str:
    """What the jar depends on; equal digests mean that a rebuild would give the same jar."""
    state = hashlib.sha256()
    for part in (tailrace_version(), spark_version, *SCALAC_FLAGS):
        state.update(part.encode() + b"\0")
    for folder, files in ((SOURCES, sources()), (STUBS, stubs()), (WORKER, worker_modules()), (RESOURCES, resources())):
        for file in files:
            state.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return state.hexdigest()


def built_digest(jar: Path) -> str | None:
    try:
        with zipfile.ZipFile(jar) as archive:
            stamp = archive.read(STAMP).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None
    return dict(line.split("=", 1) for line in stamp.splitlines()).get("sources")


def compile_into(folder: Path) -> None:
    command = [java_command(), "-Xss8m", "-cp", str(spark_jars() / "*"), "scala.tools.nsc.Main"]
    command += ["-usejavacp", *SCALAC_FLAGS, "-d", str(folder), *map(str, [*sources(), *stubs()])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise BuildError(f"the plugin's Scala sources do not compile:\n{result.stdout}{result.stderr}")


def write_jar(jar: Path, classes: Path, stamp: str) -> None:
    """Sorted entries with fixed times and modes: the same classes give the same bytes."""
    entries = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\n\r\n", STAMP: stamp.encode()}
    for path in sorted(classes.rglob("*.class")):
        name = path.relative_to(classes).as_posix()
        if name.startswith(OWN_PACKAGES):
            entries[name] = path.read_bytes()
    for folder, files in ((WORKER, worker_modules()), (RESOURCES, resources())):
        entries.update({path.relative_to(folder).as_posix(): path.read_bytes() for path in files})
    jar.parent.mkdir(parents=True, exist_ok=True)
    partial = jar.with_suffix(f".{os.getpid()}.partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    partial.replace(jar)


def build(jar: Path = JAR, *, force: bool = False) -> bool:
    """Bring `jar` up to date; says whether it had to be compiled."""
    spark_version = importlib.metadata.version("pyspark")
    wanted = digest(spark_version)
    if not force and built_digest(jar) == wanted:
        return False
    with tempfile.TemporaryDirectory(prefix="tailrace-build-") as folder:
        compile_into(Path(folder))
        stamp = f"version={tailrace_version()}\nspark={spark_version}\nsources={wanted}\n"
        write_jar(jar, Path(folder), stamp)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=JAR, help="where to put the jar")
    parser.add_argument("--force", action="store_true", help="compile even when nothing changed")
    parser.add_argument("--check-java", action="store_true", help="only look for a usable Java")
    arguments = parser.parse_args()
    try:
        if arguments.check_java:
            java_command()
            return 0
        compiled = build(arguments.output, force=arguments.force)
    except BuildError as failure:
        print(f"plugin: {failure}", file=sys.stderr)
        return 1
    print(f"plugin: {'compiled' if compiled else 'up to date'}: {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
