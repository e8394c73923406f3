"""Runs pytest, and runs the few tests that failed once more, alone: `make test` on a machine that may be busy.

Four test processes, their JVMs and whatever else runs compete for the cores. A test that fails in that crowd and passes
alone is unstable, not broken: it is reported, and the run passes. Many failures are a fault, and are not run again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

# More than this, and the change is at fault, not the crowd.
AT_MOST = 3
CACHE = Path("build/test-cache")
PYTEST = [sys.executable, "-m", "pytest", "-o", f"cache_dir={CACHE}"]
SOME_FAILED = 1


def main(arguments: list[str]) -> int:
    """:param arguments: pytest's own"""
    shutil.rmtree(CACHE, ignore_errors=True)
    status = subprocess.run([*PYTEST, *arguments]).returncode
    failed = failed_tests()
    if status != SOME_FAILED or not 0 < len(failed) <= AT_MOST:
        return status
    print(f"\nOnce more, alone: {', '.join(failed)}", flush=True)
    status = subprocess.run([*PYTEST, *failed]).returncode
    if status == 0:
        print(f"\nUnstable (failed among others, passed alone): {', '.join(failed)}", flush=True)
    return status


def failed_tests() -> list[str]:
    try:
        return sorted(json.loads((CACHE / "v/cache/lastfailed").read_text()))
    except FileNotFoundError:
        return []


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
