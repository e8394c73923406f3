"""Resolving jars: cached, usable offline, and a clear error if they are unavailable."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace import TailraceError
from tailrace._spark import maven
from tailrace._spark.maven import KAFKA_BROKER, KAFKA_CONNECTOR, IvyOptions, JarSet
from tests.helpers.processes import tailrace as tailrace_cli

# A settings file of the user's that knows one repository, where nobody listens.
DEAD_REPOSITORY = """
<ivysettings>
  <settings defaultResolver="nowhere"/>
  <resolvers><ibiblio name="nowhere" m2compatible="true" root="http://127.0.0.1:9/"/></resolvers>
</ivysettings>
"""


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def no_network(empty_cache: Path) -> IvyOptions:
    settings = empty_cache / "ivysettings.xml"
    settings.write_text(DEAD_REPOSITORY)
    return IvyOptions(settings=str(settings), home=str(empty_cache / "ivy"))


def test_no_network_and_an_empty_cache(no_network: IvyOptions) -> None:
    begun = time.monotonic()
    with pytest.raises(TailraceError) as failure:
        maven.resolve(KAFKA_CONNECTOR, no_network)
    assert failure.value.code == "TAILRACE_JARS_UNREACHABLE"
    log = Path(failure.value.problem.rpartition(" ")[2])
    assert "nowhere" in log.read_text(), "the user's Ivy settings were not used"
    assert time.monotonic() - begun < 60


def test_what_was_resolved_once_needs_no_network_and_no_java(
    no_network: IvyOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = tmp_path / "some.jar"
    jar.touch()
    monkeypatch.setattr(maven, "_download", lambda *_: [jar])
    wanted = replace(KAFKA_CONNECTOR, sha256={jar.name: hashlib.sha256(b"").hexdigest()})
    assert maven.resolve(wanted, no_network) == [jar]
    monkeypatch.undo()
    monkeypatch.setenv("TAILRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert maven.resolve(wanted, no_network) == [jar]
    jar.unlink()
    assert maven.cached(wanted, no_network) is None


def test_the_default_jars_are_those_that_were_tested() -> None:
    for wanted in (KAFKA_CONNECTOR, KAFKA_BROKER):
        jars = maven.resolve(wanted)
        assert {jar.name for jar in jars} == set(wanted.sha256)


def test_a_download_that_is_not_the_tested_jar(
    no_network: IvyOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = tmp_path / next(iter(KAFKA_CONNECTOR.sha256))
    forged.write_bytes(b"not what was tested")
    monkeypatch.setattr(maven, "_download", lambda *_: [forged])
    for _ in range(2):
        with pytest.raises(TailraceError) as failure:
            maven.resolve(KAFKA_CONNECTOR, no_network)
        assert failure.value.code == "TAILRACE_JAR_CHANGED"
        assert str(forged) in failure.value.problem
    monkeypatch.setattr(maven, "_download", lambda *_: [tmp_path / "additional.jar"])
    (tmp_path / "additional.jar").touch()
    with pytest.raises(TailraceError, match="TAILRACE_JAR_CHANGED"):
        maven.resolve(KAFKA_CONNECTOR, no_network)


def test_a_cached_jar_that_was_changed(no_network: IvyOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "some.jar"
    jar.write_bytes(b"as it was")
    wanted = replace(KAFKA_CONNECTOR, sha256={jar.name: hashlib.sha256(b"as it was").hexdigest()})
    monkeypatch.setattr(maven, "_download", lambda *_: [jar])
    assert maven.resolve(wanted, no_network) == [jar]
    jar.write_bytes(b"as it is now")
    with pytest.raises(TailraceError, match="TAILRACE_JAR_CHANGED"):
        maven.resolve(wanted, no_network)


def test_coordinates_of_the_users_own_are_his_to_trust(
    no_network: IvyOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = tmp_path / "own.jar"
    jar.touch()
    monkeypatch.setenv(KAFKA_CONNECTOR.variable, "org.example:own:1")
    monkeypatch.setattr(maven, "_download", lambda *_: [jar])
    assert maven.resolve(KAFKA_CONNECTOR, no_network) == [jar]


@pytest.mark.parametrize("index", ["[" * 100_000, "{}", "[]", "null", '{"jars": 1}', "\x00"])
def test_an_index_that_is_none(index: str, no_network: IvyOptions) -> None:
    maven._index_file(KAFKA_CONNECTOR, no_network).write_text(index)
    assert maven.cached(KAFKA_CONNECTOR, no_network) is None


def test_coordinates_can_be_pinned_by_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KAFKA_CONNECTOR.variable, "a:b:1, c:d:2")
    assert KAFKA_CONNECTOR.pinned().coordinates == ("a:b:1", "c:d:2")
    monkeypatch.delenv(KAFKA_CONNECTOR.variable)
    assert KAFKA_CONNECTOR.pinned() is KAFKA_CONNECTOR


def test_a_coordinate_that_does_not_exist(empty_cache: Path) -> None:
    unknown = JarSet("nonsense", ("org.example.tailrace:no-such-jar:1",), transitive=False, variable="X")
    with pytest.raises(TailraceError) as failure:
        maven.resolve(unknown)
    assert failure.value.code == "TAILRACE_JARS_UNREACHABLE"
    assert "no-such-jar" in failure.value.problem


def test_users_ivy_settings_come_from_the_spark_configuration() -> None:
    conf = {"spark.jars.ivySettings": "/s.xml", "spark.jars.ivy": "/ivy", "spark.jars.repositories": "r"}
    assert IvyOptions.from_conf(conf) == IvyOptions("/s.xml", "/ivy", "r")


def test_the_command_line_says_it_in_one_message(no_network: IvyOptions, tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    settings = f"spark.jars.ivySettings {no_network.settings}\nspark.jars.ivy {no_network.home}\n"
    (conf / "spark-defaults.conf").write_text(settings)
    result = tailrace_cli("demo", env={"SPARK_CONF_DIR": str(conf)})
    assert result.returncode == 1
    assert "TAILRACE_JARS_UNREACHABLE" in result.stderr
    assert "Traceback" not in result.stderr
