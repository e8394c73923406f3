"""The sockets of Python workers: in a folder that only their user can enter, and gone at the end."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.processes import run_python

APPLICATION = """
import json, os, signal, stat, sys
from pathlib import Path
from pyspark import SparkContext
from pyspark.sql import SparkSession, functions as F
import tailrace

master, temporary, end, *sessions = sys.argv[1:]

def sockets():
    found = [Path(folder) / name for folder, _, names in os.walk(temporary) for name in names]
    return [one for one in found if one.is_socket()]

os.umask(0)
# One after the other in the same JVM, because it takes longer to start than all of them together.
for settings in sessions:
    before = sockets()
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for key, value in json.loads(settings).items():
        builder = builder.config(key, value)
    builder = builder.config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={temporary}")
    builder = builder.config("spark.executor.extraJavaOptions", f"-Djava.io.tmpdir={temporary}")
    spark = tailrace.configure(builder, kafka_connector=False).getOrCreate()
    twice = F.udf(lambda value: value * 2, "long")
    total = sum(row[0] for row in spark.range(100).select(twice("id")).collect())
    found = [one for one in sockets() if one not in before]
    folders = {str(one.parent): stat.S_IMODE(one.parent.stat().st_mode) for one in found}
    print("FOUND", json.dumps({"total": total, "sockets": len(found), "folders": folders}), flush=True)
    if end == "kill":
        os.kill(SparkContext._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    spark.stop()
"""
DEFAULTS: dict[str, str] = {}


@pytest.fixture
def temporary() -> Iterator[Path]:
    """As short as a real one: the path of a socket has room for about a hundred bytes."""
    folder = Path(tempfile.mkdtemp(prefix="tr", dir="/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def run(
    temporary: Path, *sessions: dict[str, str], master: str = "local[2]", end: str = "stop"
) -> list[dict[str, Any]]:
    """What each session found."""
    settings = [json.dumps(one) for one in sessions]
    done = run_python(APPLICATION, master, str(temporary), end, *settings, timeout_s=180)
    assert done.returncode == 0 or end == "kill", done.stderr
    found = [json.loads(line.removeprefix("FOUND ")) for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert [one["total"] for one in found] == [9900] * len(sessions)
    return found


@pytest.mark.chaos
def test_only_their_user_can_reach_those_of_an_executor(temporary: Path) -> None:
    (found,) = run(temporary, DEFAULTS, master="local-cluster[1,2,1024]")
    assert found["sockets"] >= 2
    assert set(found["folders"].values()) == {0o700}
    assert len(found["folders"]) == 2, "the driver and the executor have their own"
    assert_nothing_is_left(temporary)


def test_only_their_user_can_reach_them(temporary: Path) -> None:
    """By default, in a folder of the user's own, and without Unix sockets."""
    own = temporary / "own"
    own.mkdir(mode=0o700)
    in_own_folder = {"spark.python.unix.domain.socket.dir": str(own)}
    by_default, in_own, without = run(
        temporary, DEFAULTS, in_own_folder, {"spark.python.unix.domain.socket.enabled": "false"}
    )
    assert by_default["sockets"] >= 2
    (mode,) = by_default["folders"].values()
    assert mode == 0o700
    assert list(in_own["folders"]) == [str(own)]
    assert stat.S_ISDIR(own.stat().st_mode), "it is not ours to delete"
    assert without["sockets"] == 0
    assert_nothing_is_left(temporary)


def assert_nothing_is_left(temporary: Path) -> None:
    assert [entry for entry in temporary.iterdir() if entry.name.startswith("tailrace-")] == []


def test_what_a_killed_driver_leaves_is_removed_by_the_next(temporary: Path) -> None:
    run(temporary, DEFAULTS, end="kill")
    [left] = temporary.glob("tailrace-sockets-*")
    os.utime(left, (0, 0))
    run(temporary, DEFAULTS)
    assert not left.exists()
