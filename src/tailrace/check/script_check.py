"""Checks the queries of a script, each together with those that it started earlier."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace._kafka.java_properties import read_file
from tailrace._process.paths import log_file
from tailrace.check.check import require_query, verdict_on
from tailrace.check.description import QueryShape
from tailrace.check.facts import SAMPLE_MS, Facts, facts_of
from tailrace.check.script import run_without_starting
from tailrace.check.slots import Holder
from tailrace.check.start_hook import is_real_time
from tailrace.check.verdict import Verdict
from tailrace.errors import TailraceError

KAFKA_CONFIG_KEY = "spark.tailrace.check.kafkaConfig"


@dataclasses.dataclass
class ScriptQueries:
    """What was found in a script."""

    verdicts: list[Verdict] = dataclasses.field(default_factory=list)
    micro_batch: list[str] = dataclasses.field(default_factory=list)
    """The lines that start queries with another trigger, which were not looked at."""
    failure: TailraceError | None = None
    """The error that ended the script after it had started a query."""

    @property
    def blocked(self) -> bool:
        return self.failure is not None or any(verdict.blocked for verdict in self.verdicts)


def check_script(
    script: Path,
    arguments: list[str],
    *,
    from_micro_batch: bool = False,
    master: str | None = None,
    kafka_config: Path | None = None,
    sample_ms: int = SAMPLE_MS,
) -> ScriptQueries:
    """The verdict on every query of a script, in the order in which it starts them.

    :param master: another than the script's own.
    :param kafka_config: client properties with which brokers are asked, in the place of the queries' own.
    """
    settings = {} if master is None else {"spark.master": master}
    if kafka_config is not None:
        read_file(kafka_config)
        settings[KAFKA_CONFIG_KEY] = str(kafka_config.absolute())
    found = ScriptQueries()
    holders: dict[str, Holder] = {}

    def look(writer: DataStreamWriter, line: str | None) -> Callable[[], None]:
        require_query(writer)
        if not is_real_time(writer) and not from_micro_batch:
            found.micro_batch.append(line or "?")
            return lambda: None
        facts = _beside(list(holders.values()), facts_of(writer, sample_ms=sample_ms, folder=script.parent))
        # Queries without a name are numbered.
        name = facts.name if facts.is_named else f"query {len(found.verdicts) + 1}"
        verdict = verdict_on(facts, writer._spark, from_micro_batch=from_micro_batch)
        verdict = dataclasses.replace(verdict, name=name, started_at=line)
        found.verdicts.append(verdict)
        holders[name] = Holder(name, name, verdict.shape.slots or 0)

        def stopped() -> None:
            holders.pop(name, None)

        return stopped

    try:
        run_without_starting(script, arguments, look, log_file("check-spark"), settings)
    except TailraceError as failure:
        if not found.verdicts and not found.micro_batch:
            raise
        found.failure = failure
    finally:
        if (spark := SparkSession.getActiveSession()) is not None:
            spark.stop()
    if not found.verdicts and not found.micro_batch:
        raise TailraceError(
            "TAILRACE_NO_QUERY", f"{script} starts no stream.", "name the script that calls writeStream…start()."
        )
    return found


def shapes_in(
    script: Path, arguments: list[str], master: str | None = None, kafka_config: Path | None = None
) -> dict[str, QueryShape]:
    """How the queries of a script would run, by name; micro-batch ones as if they ran in Real-Time Mode."""
    found = check_script(
        script, arguments, from_micro_batch=True, master=master, kafka_config=kafka_config, sample_ms=0
    )
    return {verdict.name: verdict.shape for verdict in found.verdicts}


def _beside(earlier: list[Holder], facts: Facts) -> Facts:
    """The queries that the script started before this one, and has not stopped, hold their slots."""
    slots = dataclasses.replace(facts.slots, holders=(*facts.slots.holders, *earlier))
    return dataclasses.replace(facts, slots=slots)
