"""Find Java as PySpark does, with a clear error if it is missing or too old."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tailrace.errors import TailraceError

OLDEST_JAVA = 17
FIX = f"install a Java {OLDEST_JAVA} runtime (or later) and put it on the PATH, or point JAVA_HOME at it."


@dataclass(frozen=True)
class Java:
    command: str
    version: str
    found_by: str

    @property
    def major(self) -> int:
        parts = self.version.split(".")
        # Java 8 and older call themselves 1.8.
        return int(parts[1] if parts[0] == "1" and len(parts) > 1 else re.split(r"\D", parts[0])[0])


def find_java() -> Java:
    """The Java that Spark will use: JAVA_HOME first, then the PATH."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    found_by = "JAVA_HOME" if home else "PATH"
    if command is None:
        raise TailraceError("TAILRACE_JAVA_MISSING", "no Java was found on the PATH and JAVA_HOME is not set.", FIX)
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise TailraceError(
            "TAILRACE_JAVA_MISSING", f"Java (from {found_by}) cannot be run: {command}: {failure}", FIX
        ) from None
    match = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    if match is None:
        raise TailraceError("TAILRACE_JAVA_MISSING", f"{command} (from {found_by}) printed no Java version.", FIX)
    return Java(command, match[1], found_by)


def require_java() -> Java:
    java = find_java()
    if java.major < OLDEST_JAVA:
        raise TailraceError(
            "TAILRACE_JAVA_TOO_OLD",
            f"{java.command} (from {java.found_by}) is Java {java.version}; Spark 4.3 needs {OLDEST_JAVA} or later.",
            FIX,
        )
    return java
