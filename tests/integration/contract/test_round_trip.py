"""What crosses the JVM border is the same on both sides: names, types and values."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import typing
from pathlib import Path
from types import UnionType
from typing import Any

import pytest

from tailrace._spark.java import require_java
from tailrace._spark.plugin import plugin_jar, spark_jars
from tailrace.contract.codec import decode, encode, field_types
from tailrace.contract.live_figures import LiveFiguresMessage
from tailrace.contract.query_description import QueryDescription
from tailrace.contract.support import SupportEntry
from tests.helpers.scala import SOURCES, compiled_jar

MESSAGES: dict[str, type] = {kind.__name__: kind for kind in (LiveFiguresMessage, QueryDescription, SupportEntry)}


@pytest.fixture(scope="module")
def tests_jar() -> Path:
    return compiled_jar(SOURCES / "contract")


def run_samples(tests_jar: Path, *arguments: str, given: str = "") -> str:
    classpath = os.pathsep.join([str(tests_jar), str(plugin_jar()), str(spark_jars() / "*")])
    command = [require_java().command, "-XX:TieredStopAtLevel=1", "-cp", classpath]
    command += ["org.apache.spark.sql.tailrace.ContractSamples", *arguments]
    answer = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def jvm_side(tests_jar: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(run_samples(tests_jar))
    return told


def test_names_and_types_of_the_fields_agree(jvm_side: dict[str, Any]) -> None:
    ours = {
        kind.__name__: {name: described(of) for name, of in field_types(kind).items()}
        for kind in reachable(set(MESSAGES.values()))
    }
    assert ours.keys() == jvm_side["schema"].keys()
    for name, fields in ours.items():
        assert fields == jvm_side["schema"][name], name


def test_values_come_back_as_they_were(jvm_side: dict[str, Any], tests_jar: Path) -> None:
    samples = jvm_side["samples"]
    assert samples.keys() == MESSAGES.keys()
    again = {name: [encode(decode(MESSAGES[name], value)) for value in values] for name, values in samples.items()}
    assert run_samples(tests_jar, "compare", given=json.dumps(again)).strip() == "the same"
    again["SupportEntry"][0]["name"] += "?"
    assert run_samples(tests_jar, "compare", given=json.dumps(again)).strip() == "different"


def reachable(kinds: set[type]) -> set[type]:
    inside = {record for kind in kinds for of in field_types(kind).values() for record in records_in(of)}
    return kinds if inside <= kinds else reachable(kinds | inside)


def records_in(of: Any) -> set[type]:
    if dataclasses.is_dataclass(of):
        return {typing.cast("type", of)}
    return {record for inner in typing.get_args(of) for record in records_in(inner)}


def described(of: Any) -> str:
    origin, arguments = typing.get_origin(of), typing.get_args(of)
    if origin in (UnionType, typing.Union):
        names = sorted(described(one) for one in arguments if one is not type(None))
        return " | ".join([*names, *(["None"] if type(None) in arguments else [])])
    if origin is tuple:
        # Raw JSON may be null, and so may an optional piece of it.
        return "tuple[Any | None, ...]" if arguments[0] is Any else f"tuple[{described(arguments[0])}, ...]"
    if origin is not None:
        return f"Mapping[{', '.join(map(described, arguments))}]"
    return "Any" if of is Any else str(of.__name__)
