from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# Fails the first time that it is called.
UNSTABLE = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("name", [{names}])
def test_it(name):
    called = Path("called-" + name)
    first = not called.exists()
    called.touch()
    assert not first

def test_another():
    with Path("others").open("a") as others:
        others.write("x")
"""


def run(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_sample.py").write_text(source)
    return subprocess.run(
        [sys.executable, str(ROOT / "tools/run_tests.py"), "-p", "no:xdist", "test_sample.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_what_passes_alone_is_reported_as_unstable(tmp_path: Path) -> None:
    done = run(tmp_path, UNSTABLE.format(names="'a', 'b'"))
    assert done.returncode == 0, done.stdout
    assert "Unstable" in done.stdout.splitlines()[-1]
    assert "test_it[a], test_sample.py::test_it[b]" in done.stdout.splitlines()[-1]
    assert (tmp_path / "others").read_text() == "x", "only what failed runs again"


@pytest.mark.parametrize("source", ["def test_it():\n    assert False\n", UNSTABLE.format(names="'a', 'b', 'c', 'd'")])
def test_a_fault_fails(tmp_path: Path, source: str) -> None:
    done = run(tmp_path, source)
    assert done.returncode == 1
    assert "Unstable" not in done.stdout


def test_a_test_that_passes_is_run_once(tmp_path: Path) -> None:
    assert run(tmp_path, "def test_it():\n    pass\n").returncode == 0
    assert run(tmp_path, "def test_it(:\n").returncode == 2
