"""The model of the exactly-once sink and the real deduplicator, over tens of thousands of random histories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Of each property, of which there are about thirty.
HISTORIES = "2000"


@pytest.mark.timeout(3 * 3600)
def test_the_model_holds_in_tens_of_thousands_of_histories() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "tests/unit/sink/test_model.py"],
        cwd=ROOT,
        env={**os.environ, "TAILRACE_HISTORIES": HISTORIES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
