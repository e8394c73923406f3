"""The dashboards served on this machine, for `tailrace top` and `tailrace drain`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tailrace._process.paths import state_folder


@dataclass(frozen=True)
class Served:
    url: str
    application: str
    pid: int
    token: str = field(default="", repr=False)


def announce(url: str, application: str, token: str = "") -> Path:
    """Leave a note for other commands of this user; delete it when the dashboard ends."""
    note = state_folder("dashboards") / f"{os.getpid()}-{url.rpartition(':')[2].strip('/')}.json"
    # Private from the first byte, because it holds the token.
    note.unlink(missing_ok=True)
    note.touch(mode=0o600, exist_ok=False)
    note.write_text(json.dumps(asdict(Served(url, application, os.getpid(), token))), encoding="utf-8")
    return note


def find() -> list[Served]:
    """All running dashboards, the newest last. Removes the notes of processes that are gone."""
    found = []
    for note in sorted(state_folder("dashboards").glob("*.json"), key=_age):
        try:
            served = Served(**json.loads(note.read_text(encoding="utf-8")))
            os.kill(served.pid, 0)
        except (OSError, ValueError, TypeError):
            note.unlink(missing_ok=True)
        else:
            found.append(served)
    return found


def _age(note: Path) -> float:
    try:
        return note.stat().st_mtime
    except OSError:
        return 0.0
