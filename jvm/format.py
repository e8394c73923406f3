"""Format the Scala sources with scalafmt, or check that they are formatted.

scalafmt comes from Maven through Tailrace's own resolver and cache, in the version that `.scalafmt.conf`
names. Files that are known to be formatted are skipped, so a second check takes no time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import build
from tailrace._spark.maven import JarSet, resolve
from tailrace.errors import TailraceError

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / ".scalafmt.conf"
FOLDERS = ("jvm", "tests")
PROGRESS = ("Looking for", "Reformatting")
# Digests of files that scalafmt has accepted.
ACCEPTED = ROOT / "build" / "scalafmt.json"


def scalafmt() -> JarSet:
    version = re.search(r'^version = "?([\w.]+)', CONFIG.read_text(encoding="utf-8"), re.MULTILINE)
    if version is None:
        raise SystemExit(f"format: no version in {CONFIG}")
    return JarSet(
        name="scalafmt",
        coordinates=(f"org.scalameta:scalafmt-cli_2.13:{version[1]}",),
        transitive=True,
        variable="TAILRACE_SCALAFMT",
    )


def command() -> list[str]:
    # Spark's Ivy leaves out Scala's own library. Nothing else of PySpark's jars may be on the classpath.
    jars = [*resolve(scalafmt()), *build.spark_jars().glob("scala-library-*.jar")]
    return [build.java_command(), "-cp", os.pathsep.join(map(str, jars)), "org.scalafmt.cli.Cli"]


def digest(file: Path) -> str:
    return hashlib.sha256(CONFIG.read_bytes() + b"\0" + file.read_bytes()).hexdigest()


def accepted() -> set[str]:
    try:
        return set(json.loads(ACCEPTED.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return set()


def run(files: list[Path], *, check: bool) -> int:
    known = accepted()
    unknown = [file for file in files if digest(file) not in known]
    if unknown:
        mode = ["--test"] if check else []
        arguments = ["--config", str(CONFIG), "--non-interactive", *mode, *map(str, unknown)]
        answer = subprocess.run([*command(), *arguments], check=False, cwd=ROOT, capture_output=True, text=True)
        # Standard output has only scalafmt's progress.
        lines = [line for line in answer.stderr.splitlines() if line and not line.startswith(PROGRESS)]
        # The exit code is not enough: it is 0 if one file does not parse and another is not formatted.
        if answer.returncode != 0 or lines:
            print("\n".join(lines), file=sys.stderr)
            if check:
                print("format: run `make format` to apply these changes", file=sys.stderr)
            return 1
    ACCEPTED.parent.mkdir(exist_ok=True)
    ACCEPTED.write_text(json.dumps(sorted(map(digest, files))), encoding="utf-8")
    print(f"format: {len(files)} Scala files are formatted")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; show what is not formatted and fail")
    arguments = parser.parse_args()
    files = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.scala"))
    try:
        return run(files, check=arguments.check)
    except (build.BuildError, TailraceError) as failure:
        print(f"format: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
