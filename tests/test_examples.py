"""The examples run as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_ad_click_join() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "ad_click_join.py"), "--ads", "10"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "click 4 of visitor 4 came from impression 4" in done.stdout
    assert "5 of 5 clicks attributed" in done.stdout
