"""Which program an argument belongs to, what reports hide, and what a checkpoint tells about the next run."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tailrace import TailraceError
from tailrace._process.redaction import HIDDEN, hide_in_command, hide_in_text
from tailrace.supervise.run.arguments import Arguments, refuse_what_cannot_be_supervised, take_apart
from tailrace.supervise.run.output import RotatingLog
from tailrace.supervise.run.replay import replay_of
from tailrace.supervise.run.submit import command_of

OWN = ("--restarts", "--health-port")
FLAGS = ("--show-spark-log", "--help", "-h")


def apart(line: str) -> Arguments:
    return take_apart(line.split(), OWN, FLAGS)


@pytest.mark.parametrize(
    ("line", "own", "submit"),
    [
        ("", "", ""),
        ("--restarts 3", "--restarts 3", ""),
        ("--master local[4] --restarts 3 --conf a=b", "--restarts 3", "--master local[4] --conf a=b"),
        ("--master=local[4] --restarts=3", "--restarts=3", "--master=local[4]"),
        ("-v -c a=b --supervise --show-spark-log", "--show-spark-log", "-v -c a=b --supervise"),
        ("--py-files lib.py --files other.py", "", "--py-files lib.py --files other.py"),
        ("--of-tomorrow yes --new-flag", "", "--of-tomorrow yes --new-flag"),
        ("--new-flag --driver-memory 2g", "", "--new-flag --driver-memory 2g"),
    ],
)
def test_in_front_of_the_script(line: str, own: str, submit: str) -> None:
    arguments = apart(f"{line} app.py --restarts 9 --conf x")
    assert arguments.own == own.split()
    assert arguments.submit == submit.split()
    assert (arguments.script, arguments.script_arguments) == ("app.py", ["--restarts", "9", "--conf", "x"])


def test_no_script() -> None:
    assert apart("--master local").script == ""


@pytest.mark.parametrize(
    "line", ["--deploy-mode cluster", "--deploy-mode=cluster", "--conf spark.submit.deployMode=cluster"]
)
def test_a_driver_elsewhere_cannot_be_watched(line: str) -> None:
    with pytest.raises(TailraceError) as refused:
        refuse_what_cannot_be_supervised(apart(f"{line} app.py"))
    assert refused.value.code == "TAILRACE_NOT_SUPERVISED"


def test_a_driver_here_can() -> None:
    refuse_what_cannot_be_supervised(apart("--deploy-mode client --conf a=cluster app.py"))


@pytest.mark.parametrize(
    ("line", "java_options"),
    [
        ("", ["-XX:+UseParallelGC"]),
        ("--driver-java-options -Xss2m", ["-Xss2m", "-Xss2m -XX:+UseParallelGC"]),
        ("--conf spark.driver.extraJavaOptions=-Xss2m", ["-Xss2m -XX:+UseParallelGC"]),
        ("--driver-java-options -XX:+UseZGC", ["-XX:+UseZGC"]),
        ("--conf spark.driver.extraJavaOptions=-XX:+UseZGC", []),
    ],
)
def test_options_of_the_drivers_jvm_are_joined_with_ours(line: str, java_options: list[str]) -> None:
    arguments = take_apart([*line.split(), "app.py"], OWN, FLAGS)
    command = command_of(arguments)
    given = [after for word, after in pairwise(command) if word == "--driver-java-options"]
    assert given == java_options
    assert command[-1] == "app.py"


def test_secrets_of_a_command_are_hidden() -> None:
    line = "--conf spark.my.password=geheim --conf=a.token=geheim -c x.secret=a=geheim --access-key geheim"
    shown = hide_in_command([*line.split(), "--conf", "spark.app.name=mine", "geheimnis.py"])
    assert "geheim" not in " ".join(shown).replace("geheimnis", "")
    assert shown[:3] == ["--conf", f"spark.my.password={HIDDEN}", f"--conf=a.token={HIDDEN}"]
    assert shown[-2:] == ["spark.app.name=mine", "geheimnis.py"]


@pytest.mark.parametrize(
    "text",
    [
        "password=geheim",
        'jaas.config = PlainLoginModule required username="a" password="geheim heim";',
        '{"token": "geheim", "b": 1}',
        "ssl.key.password: geheim",
        "fs.s3a.access.key=geheim",
    ],
)
def test_secrets_in_a_log_are_hidden(text: str) -> None:
    assert "geheim" not in hide_in_text(f"before {text} after")


def test_what_is_no_secret_stays() -> None:
    text = "ValueError: cannot score 7\n  File 'app.py', line 12\n key=value"
    assert hide_in_text(text) == text


@pytest.fixture
def checkpoint_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "check point"
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    offsets = {"payments": {"0": 120, "1": 90}}
    for epoch in (0, 1):
        (folder / "commits" / str(epoch)).write_text("v1\n{}")
        (folder / "offsets" / str(epoch)).write_text(f"v1\n{{}}\n{json.dumps(offsets)}\n")
    (folder / "commits" / ".1.crc").touch()
    (folder / "offsets" / "2").write_text('v1\n{}\n{"payments":{"0":500,"1":500}}\n')
    return folder


def test_the_next_run_begins_behind_the_last_commit(checkpoint_folder: Path) -> None:
    read_to = {"payments": {"0": 150}}
    replay = replay_of(f"file:{str(checkpoint_folder).replace(' ', '%20')}", read_to)
    assert (replay.epoch, replay.begins_at) == (1, {"payments": {"0": 120, "1": 90}})
    assert replay.records_of("payments", "0") == 30
    assert replay.records_of("payments", "1") is None


def test_a_checkpoint_without_a_commit(checkpoint_folder: Path) -> None:
    for file in (checkpoint_folder / "commits").iterdir():
        file.unlink()
    assert (replay_of(str(checkpoint_folder)).epoch, replay_of(str(checkpoint_folder)).problem) == (None, None)


@pytest.mark.parametrize("location", ["s3a://bucket/checkpoint", "/no/such/folder"])
def test_a_checkpoint_that_cannot_be_read(location: str) -> None:
    assert replay_of(location).problem


def test_a_log_of_bounded_size(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "run.log", largest_bytes=100)
    for number in range(100):
        log.write(b"%09d\n" % number)
    log.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 4
    assert all(file.stat().st_size <= 100 for file in files)
    assert (tmp_path / "run.log").read_text().endswith("000000099\n")
