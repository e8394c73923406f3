"""Temporary folders that do not outlive their process, even if it is killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

LOCK = ".owner"
# A folder is this old before another process may remove it: its owner needs a moment to lock it.
SETTLED_AFTER_S = 60.0

_locks: dict[Path, int] = {}


def new_folder(kind: str) -> Path:
    """A folder readable only by this user, to be deleted by `delete_folder`.

    Removes the folders of this kind and user whose processes are gone. A process holds a lock on its folder as long as
    it lives, which also holds for processes in other containers that share the disk.
    """
    _remove_abandoned(kind)
    folder = Path(tempfile.mkdtemp(prefix=_prefix(kind)))
    lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    _locks[folder] = lock
    return folder


def delete_folder(folder: Path) -> None:
    """Safe to call twice."""
    shutil.rmtree(folder, ignore_errors=True)
    if (lock := _locks.pop(folder, None)) is not None:
        os.close(lock)


def _prefix(kind: str) -> str:
    return f"tailrace-{kind}-"


def _remove_abandoned(kind: str) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_prefix(kind)}*"):
        # Another process may remove it at the same time.
        with contextlib.suppress(OSError):
            found = folder.lstat()
            is_settled = time.time() - found.st_mtime > SETTLED_AFTER_S
            if found.st_uid == os.getuid() and not folder.is_symlink() and is_settled:
                _remove_unless_locked(folder)


def _remove_unless_locked(folder: Path) -> None:
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
