"""Copies an example. The examples are one set of files: the wheel has a copy of `examples/`, made when it is built."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tailrace.errors import TailraceError

IN_THE_WHEEL = Path(__file__).parent / "examples"
IN_THE_REPOSITORY = Path(__file__).parents[3] / "examples"
TEMPLATES = {
    "fraud": "velocity and a model, decisions in PostgreSQL",
    "personalization": "features per user in Redis, read by a service that ranks offers",
    "alerting": "error rates and silence, alerts in Kafka",
    "leaderboard": "scores in a Redis sorted set, and a live page",
    "iot": "a baseline for each device, alerts and commands in Kafka",
}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
# The first heading of a README is the project's name.
TITLE = re.compile(r"^# .*$", re.MULTILINE)


def new_project(name: str, template: str, parent: Path) -> Path:
    """Copy a template to the folder `name` below `parent`."""
    if template not in TEMPLATES:
        raise TailraceError(
            "TAILRACE_BAD_ARGUMENT", f"there is no template '{template}'.", f"choose one of {', '.join(TEMPLATES)}."
        )
    if not NAME.fullmatch(name):
        raise TailraceError(
            "TAILRACE_BAD_ARGUMENT",
            f"'{name}' cannot be a project's name.",
            "use up to 64 letters, digits, hyphens and underscores, beginning with a letter.",
        )
    folder = parent / name
    if folder.exists() or folder.is_symlink():
        raise TailraceError("TAILRACE_FOLDER_EXISTS", f"{folder} exists already.", "choose another name.")
    try:
        shutil.copytree(_source(template), folder, ignore=shutil.ignore_patterns("__pycache__", ".*", "*.pyc"))
        _rename(folder, name)
    except OSError as failure:
        raise TailraceError(
            "TAILRACE_FOLDER_NOT_WRITABLE", f"cannot write {folder}: {failure.strerror}.", "choose another folder."
        ) from None
    return folder


def _source(template: str) -> Path:
    return (IN_THE_WHEEL if IN_THE_WHEEL.is_dir() else IN_THE_REPOSITORY) / template


def _rename(folder: Path, name: str) -> None:
    readme = folder / "README.md"
    readme.write_text(TITLE.sub(f"# {name}", readme.read_text(encoding="utf-8"), count=1), encoding="utf-8")
