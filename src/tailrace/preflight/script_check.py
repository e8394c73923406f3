"""The queries of a script, each as it would be started, beside those that it has started before."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace._paths import log_file
from tailrace.errors import TailraceError
from tailrace.preflight.check import verdict_on
from tailrace.preflight.description import QueryShape
from tailrace.preflight.facts import SAMPLE_MS, Facts, facts_of
from tailrace.preflight.script import run_without_starting
from tailrace.preflight.starts import is_real_time
from tailrace.preflight.verdict import Verdict


@dataclasses.dataclass
class ScriptQueries:
    """What was found in a script."""

    verdicts: list[Verdict] = dataclasses.field(default_factory=list)
    micro_batch: list[str] = dataclasses.field(default_factory=list)
    """The lines that start queries with another trigger, which were not looked at."""


def check_script(script: Path, arguments: list[str], *, from_micro_batch: bool = False) -> ScriptQueries:
    """The verdict on every query of a script, in the order in which it starts them."""
    found = ScriptQueries()

    def look(writer: DataStreamWriter, line: str | None) -> None:
        if not is_real_time(writer) and not from_micro_batch:
            found.micro_batch.append(line or "?")
            return
        facts = _beside(found.verdicts, facts_of(writer, sample_ms=SAMPLE_MS))
        verdict = verdict_on(facts, writer._spark, from_micro_batch=from_micro_batch)
        found.verdicts.append(dataclasses.replace(verdict, name=_name(facts, found.verdicts), started_at=line))

    log = log_file("check-spark")
    try:
        run_without_starting(script, arguments, look, log)
    finally:
        if (spark := SparkSession.getActiveSession()) is not None:
            spark.stop()
    if not found.verdicts and not found.micro_batch:
        raise TailraceError(
            "TAILRACE_NO_QUERY", f"{script} starts no stream.", "name the script that calls writeStream…start()."
        )
    return found


def shapes_in(script: Path, arguments: list[str]) -> dict[str, QueryShape]:
    """How the queries of a script would run, by name; micro-batch ones as if they ran in Real-Time Mode."""
    found = check_script(script, arguments, from_micro_batch=True)
    return {verdict.name: verdict.shape for verdict in found.verdicts}


def _beside(earlier: list[Verdict], facts: Facts) -> Facts:
    """The queries that the script has started before this one hold their slots."""
    held = {verdict.name: verdict.shape.slots or 0 for verdict in earlier}
    slots = dataclasses.replace(facts.slots, held={**facts.slots.held, **held})
    return dataclasses.replace(facts, slots=slots)


def _name(facts: Facts, earlier: list[Verdict]) -> str:
    """Queries without a name are numbered."""
    return facts.name if facts.is_named else f"query {len(earlier) + 1}"
