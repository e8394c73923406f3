"""One line for each thing a query needs, with the fix where something is wrong."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tailrace import EmbeddedKafka
from tests.helpers.processes import tailrace as tailrace_cli


@pytest.fixture
def java_11(tmp_path: Path) -> Path:
    """A Java home whose Java answers as version 11 does."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.21\" 2023-10-17' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def test_a_healthy_machine(kafka: EmbeddedKafka) -> None:
    result = tailrace_cli("doctor", "--json", "--bootstrap-servers", kafka.bootstrap_servers)
    answer = json.loads(result.stdout)
    assert result.returncode == 0, answer
    assert answer["healthy"] is True
    requirements = {one["name"]: one for one in answer["requirements"]}
    assert set(requirements) == {
        *("Python", "Java", "PySpark", "Plugin", "Kafka connector"),
        *("Session", "Task slots", "Kafka broker", "Checkpoint disk"),
    }
    assert all(one["ok"] for one in requirements.values())
    assert kafka.bootstrap_servers in requirements["Kafka broker"]["detail"]


def test_java_11(java_11: Path) -> None:
    result = tailrace_cli("doctor", env={"JAVA_HOME": str(java_11)})
    assert result.returncode == 1
    assert "is Java 11.0.21; Spark 4.3 needs 17 or later" in result.stdout
    assert "Fix: install a Java 17" in result.stdout


def test_no_java(tmp_path: Path) -> None:
    result = tailrace_cli("doctor", env={"JAVA_HOME": "", "PATH": str(tmp_path)})
    assert result.returncode == 1
    assert "no Java was found" in result.stdout


def test_a_java_home_that_is_wrong(tmp_path: Path) -> None:
    result = tailrace_cli("doctor", env={"JAVA_HOME": str(tmp_path)})
    assert result.returncode == 1
    assert "cannot be run" in result.stdout


def test_wrong_bootstrap_servers_and_a_read_only_checkpoint_folder(java_11: Path, unwritable_folder: Path) -> None:
    # Without a usable Java no session is started, which makes this a quick one.
    result = tailrace_cli(
        *("doctor", "--json", "--bootstrap-servers", "127.0.0.1:1", "--checkpoint-location", str(unwritable_folder)),
        env={"JAVA_HOME": str(java_11)},
    )
    assert result.returncode == 1
    requirements = {one["name"]: one for one in json.loads(result.stdout)["requirements"]}
    assert not requirements["Kafka broker"]["ok"]
    assert "127.0.0.1:1" in requirements["Kafka broker"]["detail"]
    assert not requirements["Checkpoint disk"]["ok"]
    assert requirements["Checkpoint disk"]["fix"]


def test_a_master_that_is_not_there() -> None:
    result = tailrace_cli("doctor", "--json", "--master", "nonsense", env=dict(os.environ))
    assert result.returncode == 1
    requirements = {one["name"]: one for one in json.loads(result.stdout)["requirements"]}
    assert not requirements["Session"]["ok"]
    assert "nonsense" in requirements["Session"]["detail"]
