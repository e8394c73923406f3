"""The example applications: `tailrace new` makes a project of each, and the project passes its own test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace._process.machine_load import stretched
from tailrace.new.project import TEMPLATES
from tests.helpers.processes import tailrace_command


def run(project: Path, *command: str, timeout_s: float = 600) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=stretched(timeout_s),
        check=False,
    )


def new_project(folder: Path, template: str) -> Path:
    command = tailrace_command("new", "mine", "--from", template)
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return folder / "mine"


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_project_passes_its_own_test(template: str, tmp_path: Path) -> None:
    project = new_project(tmp_path, template)
    assert {file.name for file in project.iterdir()} >= {
        "app.py",
        "load.py",
        "run.py",
        "test_app.py",
        "requirements.txt",
        "Dockerfile",
        "README.md",
    }
    done = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.chaos
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_project_is_clear(template: str, tmp_path: Path) -> None:
    done = run(new_project(tmp_path, template), "run.py", *tailrace_command("check", "app.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert ": clear" in done.stdout


@pytest.mark.chaos
@pytest.mark.parametrize("template", TEMPLATES)
def test_one_command_shows_its_figures(template: str, tmp_path: Path) -> None:
    done = run(new_project(tmp_path, template), "run.py", "--seconds", "5")
    assert done.returncode == 0, done.stderr
    assert "0 lost, 0 duplicates" in done.stdout
    assert "end to end" in done.stdout


@pytest.mark.chaos
def test_an_application_leaves_nothing_behind(tmp_path: Path) -> None:
    """Of its servers, checkpoints and processes."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "run.py", "--seconds", "3"],
        cwd=new_project(tmp_path, "iot"),
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=stretched(600),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in folder.iterdir() if "spark" not in path.name] == []
