"""Where Tailrace keeps what outlives a command: caches, state and logs, never in the user's working folder."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tailrace.errors import TailraceError


def _home(variable: str, fallback: str) -> Path:
    base = os.environ.get(variable)
    return Path(base) if base else Path.home() / fallback


def _private(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as failure:
        raise TailraceError(
            "TAILRACE_FOLDER_NOT_WRITABLE",
            f"cannot make {folder}: {failure.strerror}.",
            "name other folders with the environment variables TAILRACE_CACHE and TAILRACE_STATE.",
        ) from None
    return folder


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
