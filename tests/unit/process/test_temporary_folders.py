"""Folders of killed processes are removed by the next one; those of living processes and of others are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tailrace._process import temporary_folders
from tailrace._process.temporary_folders import delete_folder, new_folder

HOLD = """
from tailrace._process.temporary_folders import new_folder
print(new_folder("sample"), flush=True)
input()
"""


@pytest.fixture(autouse=True)
def own_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def make_old(folder: Path) -> None:
    os.utime(folder, (0, 0))


def test_only_the_folders_of_processes_that_are_gone_are_removed(tmp_path: Path) -> None:
    holders = [
        subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        lines = [holder.stdout.readline() for holder in holders if holder.stdout is not None]
        killed, living = (Path(line.strip()) for line in lines)
        foreign = tmp_path / "tailrace-sample-unknown"  # without a lock: nobody knows whose it is
        other = tmp_path / "tailrace-other-x"
        for folder in (foreign, other):
            folder.mkdir()
        (other / temporary_folders.LOCK).touch()
        holders[0].send_signal(signal.SIGKILL)
        holders[0].wait()
        young = new_folder("sample")
        assert killed.exists(), "it may be so new that its owner has not locked it yet"
        for folder in (killed, living, foreign, other, young):
            make_old(folder)
        newest = new_folder("sample")
        assert not killed.exists()
        assert all(folder.exists() for folder in (living, foreign, other, young, newest))
        assert newest.stat().st_mode & 0o077 == 0
        for folder in (young, newest, newest):
            delete_folder(folder)
            assert not folder.exists()
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.mkdir()
    (target / temporary_folders.LOCK).touch()
    make_old(target)
    (tmp_path / "tailrace-sample-link").symlink_to(target)
    delete_folder(new_folder("sample"))
    assert target.exists()
