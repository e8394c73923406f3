"""The dashboards served on this machine, for `tailrace top` and `tailrace drain`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from tailrace._process.paths import state_folder, write_private
from tailrace.contract.codec import from_json, to_json

_NOBODY = 2**31 - 1


@dataclass(frozen=True)
class Served:
    url: str
    application: str
    pid: int
    token: str = field(default="", repr=False)


def announce(url: str, application: str, token: str = "") -> Path:
    """Leave a note for other commands of this user; delete it when the dashboard ends."""
    note = state_folder("dashboards") / f"{os.getpid()}-{url.rpartition(':')[2].strip('/')}.json"
    # It holds the token.
    write_private(note, to_json(Served(url, application, os.getpid(), token)))
    return note


def find() -> list[Served]:
    """All running dashboards, the newest last. Removes the notes of processes that are gone."""
    found = []
    for note in sorted(state_folder("dashboards").glob("*.json"), key=_age):
        try:
            served = from_json(Served, note.read_text(encoding="utf-8"))
            # Zero and negative numbers are groups of processes.
            os.kill(served.pid if served.pid > 0 else _NOBODY, 0)
        except (OSError, ValueError, OverflowError):
            note.unlink(missing_ok=True)
        else:
            found.append(served)
    return found


def _age(note: Path) -> float:
    try:
        return note.stat().st_mtime
    except OSError:
        return 0.0
