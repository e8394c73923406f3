"""Folders that others could write to are refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace import TailraceError
from tailrace._process.paths import cache_folder, log_file, state_folder

FOLDERS = {"TAILRACE_CACHE": cache_folder, "TAILRACE_STATE": state_folder}


@pytest.mark.parametrize(("variable", "folder"), FOLDERS.items())
def test_a_new_folder_is_private_whatever_the_umask(
    variable: str, folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "new"))
    before = os.umask(0)
    try:
        made = folder("some")
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert folder("some") == made


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702, 0o1777])
@pytest.mark.parametrize(("variable", "folder"), FOLDERS.items())
def test_a_folder_that_others_can_write_to(
    variable: str, folder: Callable[[str], Path], mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    (tmp_path / "some").mkdir()
    (tmp_path / "some").chmod(mode)
    with pytest.raises(TailraceError) as refused:
        folder("some")
    assert refused.value.code == "TAILRACE_FOLDER_NOT_PRIVATE"
    assert str(tmp_path / "some") in refused.value.problem


@pytest.mark.parametrize(("variable", "folder"), FOLDERS.items())
def test_a_folder_of_another_user(
    variable: str, folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    (tmp_path / "some").mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(tmp_path / "some", 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(TailraceError) as refused:
        folder("some")
    assert refused.value.code == "TAILRACE_FOLDER_NOT_PRIVATE"


def test_a_folder_that_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path))
    (tmp_path / "logs").touch()
    with pytest.raises(TailraceError) as refused:
        log_file("run")
    assert refused.value.code == "TAILRACE_FOLDER_NOT_WRITABLE"
