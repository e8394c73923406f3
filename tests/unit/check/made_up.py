"""Facts made up for a rule, and what it finds in them."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

from tailrace.check.facts import Facts, Settings
from tailrace.check.rules import RULES
from tailrace.check.slots import Slots
from tailrace.contract.codec import decode, field_types
from tailrace.contract.findings import Finding, Severity
from tailrace.contract.query_description import QueryDescription

SOURCE = {
    "name": "kafka",
    "label": "kafka: payments",
    "options": {"kafka.bootstrap.servers": "broker:9092", "subscribe": "payments"},
    "real_time": True,
    "topics": ["payments"],
    "ages_ms": [],
}


STAGE = {"number": 0, "inputs": [], "sources": ["kafka: payments"], "operators": [], "tasks": 2}


CHECKPOINT = {"location": "/checkpoint", "exists": False, "offsets": [], "operators": []}


SINK = {"name": "kafka", "supported": True}


def facts(
    *,
    settings: dict[str, str] | None = None,
    slots: Slots | None = None,
    running: dict[str, str] | None = None,
    batch_ms: int | None = None,
    **changes: Any,
) -> Facts:
    """A query about which there is nothing to say but its guarantee."""
    writer = {
        "format": "kafka",
        "output_mode": "update",
        "trigger": {"real_time_ms": 300_000},
        "options": {"kafka.bootstrap.servers": "broker:9092", "topic": "decisions"},
        "sink": SINK,
        **changes.pop("writer", {}),
    }
    described = {
        "columns": [{"name": "value", "sql_type": "STRING"}],
        "epoch_ms": 300_000,
        "shortest_epoch_ms": 5000,
        "sources": [SOURCE],
        "same_source_twice": [],
        "refused": [],
        "stages": [STAGE],
        "stateful": False,
        "state": [],
        "state_before_union": [],
        "watermarks": [],
        "windows": [],
        "python": [],
        "checkpoint": CHECKPOINT,
        "writer": writer,
        **changes,
    }
    description = decode(QueryDescription, completed(QueryDescription, described))
    return Facts(description, Settings(settings or {}), slots or Slots("local[8]", 8), running or {}, batch_ms=batch_ms)


def completed(kind: Any, given: Any) -> Any:
    """The JSON with the fields that a case does not care about."""
    if dataclasses.is_dataclass(kind):
        rest = {name: EMPTY.get(of) for name, of in field_types(kind).items() if name not in given}
        return {name: completed(field_types(kind).get(name), value) for name, value in {**rest, **given}.items()}
    inner = [one for one in typing.get_args(kind) if dataclasses.is_dataclass(one)]
    if inner and isinstance(given, list):
        return [completed(inner[0], one) for one in given]
    return (
        completed(inner[0], given) if inner and given is not None else [] if given is None and _is_list(kind) else given
    )


def _is_list(kind: Any) -> bool:
    return typing.get_origin(kind) is tuple


EMPTY: dict[Any, Any] = {bool: False, str: ""}


def found(given: Facts) -> dict[str, Finding]:
    return {finding.code: finding for rule in RULES for finding in rule(given)}


def only(given: Facts, code: str, severity: Severity = Severity.WARNING) -> Finding:
    """The one finding beside the guarantee."""
    findings = found(given)
    assert set(findings) == {code, "TAILRACE_GUARANTEE"}
    assert findings[code].severity is severity
    return findings[code]
