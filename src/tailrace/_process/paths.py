"""Where Tailrace keeps what outlives a command: caches, state and logs, never in the user's working folder."""

from __future__ import annotations

import functools
import os
import stat
import time
from pathlib import Path

from tailrace.errors import TailraceError

_VARIABLES = "the environment variables TAILRACE_CACHE and TAILRACE_STATE"


def _home(variable: str, fallback: str) -> Path:
    base = os.environ.get(variable)
    return Path(base) if base else Path.home() / fallback


def _private(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.stat()
    except OSError as failure:
        raise TailraceError(
            "TAILRACE_FOLDER_NOT_WRITABLE",
            f"cannot make {folder}: {failure.strerror}.",
            f"name other folders with {_VARIABLES}.",
        ) from None
    # Root may have put the jars into an image. Anybody else could put his own there, and we would run them.
    if found.st_uid not in (os.geteuid(), 0):
        raise _not_private(folder, "belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _not_private(folder, f"can be written by other users (mode {stat.S_IMODE(found.st_mode):o})")
    return folder


def _not_private(folder: Path, why: str) -> TailraceError:
    return TailraceError(
        "TAILRACE_FOLDER_NOT_PRIVATE",
        f"{folder} {why}, who could change the jars that Spark loads or read the token of the dashboard.",
        f"make it yours (chown, chmod go-w), or name other folders with {_VARIABLES}.",
    )


def write_private(file: Path, text: str) -> None:
    """Write a new file that only this user can read, from the first byte. A link of that name is not followed."""
    file.unlink(missing_ok=True)
    with os.fdopen(private_handle(file, os.O_EXCL), "w", encoding="utf-8") as opened:
        opened.write(text)


def private_handle(file: Path, *flags: int) -> int:
    """A handle for writing, to a file that only this user can read if it is new."""
    return os.open(file, functools.reduce(int.__or__, flags, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW), 0o600)


def cache_folder(name: str) -> Path:
    """What can be recreated: resolved jars, reports of past demos."""
    override = os.environ.get("TAILRACE_CACHE")
    root = Path(override) if override else _home("XDG_CACHE_HOME", ".cache") / "tailrace"
    return _private(root / name)


def state_folder(name: str) -> Path:
    """What a later command must find, such as the broker in the background."""
    override = os.environ.get("TAILRACE_STATE")
    root = Path(override) if override else _home("XDG_STATE_HOME", ".local/state") / "tailrace"
    return _private(root / name)


def log_file(name: str) -> Path:
    """A fresh log file; the newest few of each kind are kept."""
    folder = cache_folder("logs")
    for old in sorted(folder.glob(f"{name}-*.log"))[:-9]:
        old.unlink(missing_ok=True)
    return folder / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
