"""The examples run unchanged."""

from __future__ import annotations

import subprocess
import sys

from tests.helpers.tree import ROOT

EXAMPLES = ROOT / "examples"


def test_ad_click_join() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "ad_click_join.py"), "--ads", "10"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "click 4 of visitor 4 came from impression 4" in done.stdout
    assert "5 of 5 clicks attributed" in done.stdout


def test_gaming_sessions() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "gaming_sessions.py"], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert "12 of 12 answers" in said
    assert [line for line in said if line.startswith("cem")] == [
        "cem: open, 1 actions, score 50",
        "cem: open, 1 actions, score 50",
        "cem: merged, 1 actions, score 50",
        "cem: open, 3 actions, score 150, bonus",
    ]
    assert [line.split(", ")[1] for line in said if line.startswith("ben")] == ["1 actions", "2 actions", "1 actions"]
