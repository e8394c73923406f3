"""The report of an incident: what failed, at which record, what is replayed, what was done about it."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tailrace._process.paths import state_folder, write_private
from tailrace._process.redaction import hide_in_command, hide_in_text
from tailrace._version import __version__
from tailrace.contract.codec import to_json
from tailrace.contract.run_status import IncidentSummary, RecordRange
from tailrace.errors import TailraceError
from tailrace.supervise.run.failures import Cure, Failure
from tailrace.supervise.run.replay import Replay

KEPT = 50
"""Reports of one script."""
LOG_LINES = 60


@dataclass(frozen=True)
class IncidentReport:
    """The JSON file of an incident."""

    tailrace: str
    script: str
    began_at: str
    ended_at: str
    exit_code: int | None
    query: str | None
    code: str
    problem: str
    fix: str
    cure: Cure
    records: tuple[RecordRange, ...]
    read_again: Mapping[str, Replay]
    """By the query's name, or its id."""
    next_step: str
    command: tuple[str, ...]
    log: str


@dataclass(frozen=True)
class Incident:
    script: str
    began_at: float
    """When this start of the application began."""
    ended_at: float
    exit_code: int | None
    failure: Failure
    replays: dict[str, Replay]
    """By the query's name, or its id."""
    next_step: str
    command: list[str] = field(repr=False)
    log: str
    log_end: str = field(repr=False)

    def report(self) -> IncidentReport:
        """Without secrets, for a file."""
        return IncidentReport(
            tailrace=__version__,
            script=self.script,
            began_at=_when(self.began_at),
            ended_at=_when(self.ended_at),
            exit_code=self.exit_code,
            query=self.failure.query,
            code=self.failure.code,
            problem=hide_in_text(self.failure.problem),
            fix=hide_in_text(self.failure.fix),
            cure=self.failure.cure,
            records=self.failure.records,
            read_again={name: replay.redacted() for name, replay in self.replays.items()},
            next_step=self.next_step,
            command=tuple(hide_in_command(self.command)),
            log=self.log,
        )

    def summary(self) -> IncidentSummary:
        """Without secrets, for probes."""
        full = self.report()
        return IncidentSummary(
            full.ended_at, full.query, full.code, full.problem, full.fix, full.records, full.next_step
        )

    def markdown(self) -> str:
        where = f" in the query {self.failure.query}" if self.failure.query else ""
        lived_s = self.ended_at - self.began_at
        facts = {
            "what": f"`{self.failure.code}`: {_cell(hide_in_text(self.failure.problem))}",
            "what to do": _cell(hide_in_text(self.failure.fix)),
            "which record": "; ".join(map(str, self.failure.records)) or "not known, or none",
            "what was done": _cell(self.next_step),
            "application": f"`{self.script}`, started {_when(self.began_at)}, failed after {lived_s:.0f} s, "
            + ("process still running" if self.exit_code is None else f"exit code {self.exit_code}"),
            "log": f"`{self.log}`",
        }
        table = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
        command = shlex.join(hide_in_command(self.command))
        log = "\n".join(hide_in_text(self.log_end).splitlines()[-LOG_LINES:]).replace("```", "'''")
        return (
            f"# {_when(self.ended_at)}: {self.failure.code}{where}\n\n| | |\n|---|---|\n{table}\n\n"
            f"## What is read again\n\n{_replays({name: one.redacted() for name, one in self.replays.items()})}\n"
            f"## The command\n\n```\n{command}\n```\n\n## The end of the log\n\n```\n{log}\n```\n"
        )


def write(incident: Incident, folder: Path | None) -> Path:
    """The report, and the same as JSON next to it. Only this user can read them, and only the newest are kept."""
    stem = Path(incident.script).stem
    where = folder or state_folder("incidents")
    when = time.strftime("%Y%m%d-%H%M%S", time.gmtime(incident.ended_at))
    report = where / f"{stem}-{when}-{int(incident.ended_at * 1000) % 1000:03}.md"
    try:
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        _prune(where, stem)
        write_private(report, incident.markdown())
        write_private(report.with_suffix(".json"), to_json(incident.report(), indent=2) + "\n")
    except OSError as failure:
        raise TailraceError(
            "TAILRACE_FOLDER_NOT_WRITABLE",
            f"cannot write to {where}: {failure.strerror}.",
            "name another folder with --incidents.",
        ) from None
    return report


def _prune(where: Path, stem: str) -> None:
    """Make room for one more. The folder may be the user's own, so only names that we give are touched."""
    ours = re.compile(rf"{re.escape(stem)}-\d{{8}}-\d{{6}}-\d{{3}}\.md")
    for old in sorted(file for file in where.iterdir() if ours.fullmatch(file.name))[: -KEPT + 1]:
        old.unlink(missing_ok=True)
        old.with_suffix(".json").unlink(missing_ok=True)


def _replays(replays: dict[str, Replay]) -> str:
    return "\n".join(_replay(name, replay) for name, replay in replays.items()) or "No query had been started.\n"


def _replay(name: str, replay: Replay) -> str:
    head = f"Query **{name}**, checkpoint `{replay.checkpoint}`: "
    if replay.problem is not None:
        return f"{head}from its last commit, which could not be looked up here ({replay.problem}).\n"
    if replay.epoch is None:
        records = [f"{topic}-{one} to {end}" for topic, ends in replay.read_to.items() for one, end in ends.items()]
        read = f" This one had read {', '.join(records)}." if records else ""
        return f"{head}no epoch was committed, so the next run starts where the query's options say.{read}\n"
    rows = [
        f"| {topic} | {partition} | {offset} | {_known(replay.records_of(topic, partition))} |"
        for topic, partitions in sorted(replay.begins_at.items())
        for partition, offset in sorted(partitions.items(), key=lambda one: int(one[0]))
    ]
    table = "\n".join(["| topic | partition | next offset | records read again |", "|---|---|---|---|", *rows])
    return f"{head}the last committed epoch is {replay.epoch}; the next run continues after it.\n\n{table}\n"


def _known(count: int | None) -> str:
    return "not known" if count is None else f"at least {count}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
