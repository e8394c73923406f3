"""What `tailrace new` makes, and what it refuses."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tailrace.errors import TailraceError
from tailrace.new.project import IN_THE_REPOSITORY, TEMPLATES, new_project
from tests.helpers.processes import tailrace as tailrace_cli
from tests.helpers.tree import ROOT

MAX_LINES = 300


def code_of(name: str, template: str, parent: Path) -> str:
    with pytest.raises(TailraceError) as refused:
        new_project(name, template, parent)
    return str(refused.value.code)


def test_a_project_is_the_example_under_its_own_name(tmp_path: Path) -> None:
    folder = new_project("card-fraud", "fraud", tmp_path)
    assert folder == tmp_path / "card-fraud"
    listed = subprocess.run(
        ["git", "ls-files", "examples/fraud"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert {file.name for file in folder.iterdir()} == {Path(name).name for name in listed}
    assert (folder / "README.md").read_text().splitlines()[0] == "# card-fraud"
    assert (folder / "app.py").read_text() == (IN_THE_REPOSITORY / "fraud" / "app.py").read_text()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/tmp/x", "-x", "2fast", "with space", "é", "a" * 65, "a\n"])
def test_a_bad_name(name: str, tmp_path: Path) -> None:
    assert code_of(name, "fraud", tmp_path) == "TAILRACE_BAD_ARGUMENT"
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_template(tmp_path: Path) -> None:
    assert code_of("mine", "../fraud", tmp_path) == "TAILRACE_BAD_ARGUMENT"
    assert list(tmp_path.iterdir()) == []


def test_what_exists_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "a-file").write_text("kept")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("mine", "a-file", "dangling"):
        assert code_of(name, "fraud", tmp_path) == "TAILRACE_FOLDER_EXISTS"
    assert list((tmp_path / "mine").iterdir()) == []
    assert (tmp_path / "a-file").read_text() == "kept"
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_cannot_be_written(unwritable_folder: Path) -> None:
    assert code_of("mine", "fraud", unwritable_folder) == "TAILRACE_FOLDER_NOT_WRITABLE"


def test_errors_on_the_command_line() -> None:
    refused = tailrace_cli("new", "mine", "--from", "dance")
    assert refused.returncode == 1
    assert "TAILRACE_BAD_ARGUMENT" in refused.stderr
    assert tailrace_cli("new", "mine").returncode == 2


@pytest.mark.parametrize("template", TEMPLATES)
def test_an_example_is_complete(template: str) -> None:
    folder = IN_THE_REPOSITORY / template
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 45, "more than one screen"
    for file in folder.glob("*.py"):
        assert len(file.read_text(encoding="utf-8").splitlines()) <= MAX_LINES
    # The environment that the container needs is what the application reads.
    text = (folder / "app.py").read_text(encoding="utf-8")
    ast.parse(text)
    for variable in re.findall(r'os\.environ\["(\w+)"\]', text):
        assert f"`{variable}`" in readme
        assert variable in (folder / "Dockerfile").read_text(encoding="utf-8")


def test_the_wheel_has_every_template() -> None:
    included = re.findall(
        r'^"examples/(\w+)" = "tailrace/new/examples/(\w+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert {one for pair in included for one in pair} == set(TEMPLATES)
