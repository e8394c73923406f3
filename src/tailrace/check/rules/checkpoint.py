"""The checkpoint location: is there one, can it be written, and is what lies in it this query's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tailrace.check.facts import Facts
from tailrace.check.formatting import first_sentence, listed
from tailrace.contract.findings import Finding, blocking, warning
from tailrace.contract.query_description import SourceDescription

# Spark gives these a folder that is thrown away.
MAY_GO_WITHOUT = ("console", "foreach", "foreachbatch", "memory", "noop")
COMMITS_WITH_STATE_IDS = 2
FRESH = "choose another checkpointLocation"
ROOT_KEY = "spark.sql.streaming.checkpointLocation"
STOP_ACTIVE_KEY = "spark.sql.streaming.stopActiveRunOnRestart"


def missing(facts: Facts) -> Iterator[Finding]:
    if facts.writer is None or facts.checkpoint is not None:
        return
    problem, change = "the query has no checkpoint location", '.option("checkpointLocation", "…") on durable storage.'
    if facts.settings.given(ROOT_KEY):
        yield warning(
            "TAILRACE_NO_CHECKPOINT",
            "checkpoint",
            f"the query has no name, so each start gets a new folder below {ROOT_KEY} and begins from scratch.",
            '.queryName("…"), or a checkpointLocation of its own.',
        )
    elif facts.writer.format.lower() in MAY_GO_WITHOUT:
        yield warning(
            "TAILRACE_NO_CHECKPOINT",
            "checkpoint",
            f"{problem}: Spark uses a temporary folder, and a restart begins from scratch.",
            f"unless this is an experiment: {change}",
        )
    else:
        problem += ", and Spark does not start it without one."
        yield blocking("TAILRACE_NO_CHECKPOINT", "checkpoint", problem, change)


def not_writable(facts: Facts) -> Iterator[Finding]:
    if facts.checkpoint and (problem := facts.checkpoint.problem):
        yield blocking(
            "TAILRACE_CHECKPOINT_NOT_WRITABLE",
            "checkpoint",
            f"the query cannot write its checkpoint to {facts.checkpoint.location}: {problem}.",
            f"{FRESH}, or make it writable for the user that runs the driver and the executors.",
        )


def in_use(facts: Facts) -> Iterator[Finding]:
    running = facts.running.get(facts.checkpoint.query_id or "") if facts.checkpoint else None
    if not facts.checkpoint or not running:
        return
    problem = f"the query '{running}' is running with this checkpoint: {facts.checkpoint.location}."
    if (facts.settings.given(STOP_ACTIVE_KEY) or "true").lower() == "true":
        yield warning(
            "TAILRACE_CHECKPOINT_IN_USE",
            "checkpoint",
            f"{problem} Spark will stop it and start this one instead.",
            f"unless that is intended: {FRESH}.",
        )
    else:
        yield blocking("TAILRACE_CHECKPOINT_IN_USE", "checkpoint", problem, f"stop it first, or {FRESH}.")


def name_taken(facts: Facts) -> Iterator[Finding]:
    others = {query_id: name for query_id, name in facts.running.items() if name != query_id}
    if facts.is_named and facts.name in others.values() and not facts.described.running:
        yield blocking(
            "TAILRACE_NAME_TAKEN",
            "query name",
            f"a query with the name '{facts.name}' is already running in this session, and names must be unique.",
            "stop it first, or choose another queryName.",
        )


def another_query(facts: Facts) -> Iterator[Finding]:
    if not _has_history(facts) or not facts.described.sources:
        return
    assert facts.checkpoint is not None
    sources, offsets = facts.described.sources, facts.checkpoint.offsets
    differences = []
    if len(sources) != len(offsets):
        differences.append(f"it was written by a query with {len(offsets)} sources, and this one has {len(sources)}")
    else:
        pairs = zip(sources, offsets, strict=True)
        differences += [text for source, offset in pairs if (text := _other_topics(source, offset))]
    kept, wanted = facts.checkpoint.operators, facts.described.state
    if kept and not wanted:
        differences.append("it holds state, and this query keeps none")
    elif wanted and not kept:
        differences.append("this query keeps state, and it holds none")
    elif kept and len(kept) != len(wanted):
        differences.append(f"it holds the state of {len(kept)} operators, and this query has {len(wanted)}")
    if differences:
        yield blocking(
            "TAILRACE_CHECKPOINT_OF_ANOTHER_QUERY",
            "checkpoint",
            f"{facts.checkpoint.location} is another query's checkpoint: {listed(differences)}.",
            f"{FRESH}: what a query reads and keeps cannot change under its checkpoint.",
        )


def state_format(facts: Facts) -> Iterator[Finding]:
    """Micro-batch writes version 1 unless told otherwise, and Real-Time Mode continues only from version 2."""
    if not _has_history(facts):
        return
    assert facts.checkpoint is not None
    version = commit_version(facts)
    if version is not None and version < COMMITS_WITH_STATE_IDS:
        yield blocking(
            "TAILRACE_CHECKPOINT_FORMAT",
            "checkpoint",
            f"{facts.checkpoint.location} was written in version {version} of the format, as micro-batch does by "
            "default; Real-Time Mode continues only from version 2.",
            f"{FRESH}, and start where the other query stopped: {_starting_offsets(facts)}."
            + (" Its state is not carried over." if facts.checkpoint.operators else ""),
        )


def other_state(facts: Facts) -> Iterator[Finding]:
    if (obstacle := facts.described.state_obstacle) and not [*another_query(facts), *state_format(facts)]:
        assert facts.checkpoint is not None
        yield blocking(
            "TAILRACE_CHECKPOINT_STATE",
            "checkpoint",
            f"the state in {facts.checkpoint.location} does not fit this query: {first_sentence(obstacle)}",
            f"{FRESH}, or keep the columns of the stateful operation as they were.",
        )


def commit_version(facts: Facts) -> int | None:
    """The format of what was committed last; none if nothing was."""
    said = ((facts.checkpoint and facts.checkpoint.commit_version) or "").removeprefix("v")
    return int(said) if said.isdigit() else None


def _has_history(facts: Facts) -> bool:
    return bool(facts.checkpoint and facts.checkpoint.exists and facts.checkpoint.epoch is not None)


def _other_topics(source: SourceDescription, offset: Any) -> str | None:
    if not source.topics or not isinstance(offset, dict):
        return None
    gone = set(offset) - set(source.topics)
    return (
        f"it has read the topic {listed(sorted(gone))}, and this query reads {listed(list(source.topics))}"
        if gone
        else None
    )


def _starting_offsets(facts: Facts) -> str:
    assert facts.checkpoint is not None
    offsets = [offset for offset in facts.checkpoint.offsets if isinstance(offset, dict)]
    if len(offsets) != 1:
        return '.option("startingOffsets", …) with the offsets of its last epoch'
    return f".option(\"startingOffsets\", '{json.dumps(offsets[0], separators=(',', ':'))}')"
