"""A folder in which nothing can be created, also not by root."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing can be created, renamed or deleted in the folder and all below it. Files that are open can be written."""
    try:
        _set(folder, writable=False)
        yield
    finally:
        _set(folder, writable=True)


def why_not_read_only() -> str | None:
    """Why it cannot be done here; none if it can."""
    if not _is_root():
        return None
    with tempfile.TemporaryDirectory(prefix="tailrace-chaos-") as probe, read_only(Path(probe)):
        try:
            (Path(probe) / "new").touch()
        except OSError:
            return None
    return "root ignores a folder's mode, and chattr has no effect here"


def _set(folder: Path, *, writable: bool) -> None:
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    if not _is_root():
        for each in folders:
            with contextlib.suppress(FileNotFoundError):
                each.chmod(0o700 if writable else 0o500)
        return
    # For root a mode is no obstacle, but this is. Not checked: a folder may be gone since it was listed.
    command = ["chattr", "-i" if writable else "+i", *map(str, folders)]
    with contextlib.suppress(FileNotFoundError):
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _is_root() -> bool:
    return os.geteuid() == 0
