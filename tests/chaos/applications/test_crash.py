"""The applications are killed with SIGKILL in the middle of an epoch: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tailrace._process.machine_load import stretched
from tailrace.new.project import TEMPLATES, new_project

pytestmark = pytest.mark.chaos
CRASH = Path(__file__).with_name("crash.py")


# By application, the topic that it reads.
INPUTS = {
    "alerting": "requests",
    "fraud": "payments",
    "iot": "readings",
    "leaderboard": "scores",
    "personalization": "events",
}


def test_each_application_is_killed() -> None:
    assert sorted(INPUTS) == sorted(TEMPLATES)


@pytest.mark.parametrize("template", INPUTS)
def test_a_killed_application_continues(template: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "run.py", sys.executable, "crash.py", template, INPUTS[template]],
        cwd=_project(template, tmp_path),
        capture_output=True,
        text=True,
        timeout=stretched(900),
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _project(template: str, parent: Path) -> Path:
    folder = new_project("mine", template, parent)
    (folder / "crash.py").write_text(CRASH.read_text(encoding="utf-8"), encoding="utf-8")
    return folder
