"""A user's script as the driver under test: run as it is, except that it ends when the harness does."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from tailrace.chaos._events import tell
from tailrace.chaos._owner import end_with_owner


def main() -> None:
    end_with_owner()
    tell("process")
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(script).resolve().parent))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
