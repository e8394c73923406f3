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
from pyspark.sql import SparkSession, functions as F
import tailrace

def sockets():
    found = [Path(folder) / name for folder, _, names in os.walk(sys.argv[2]) for name in names]
    return [one for one in found if one.is_socket()]

os.umask(0)
builder = SparkSession.builder.master(sys.argv[1]).config("spark.ui.enabled", "false")
for setting in sys.argv[4:]:
    builder = builder.config(*setting.split("=", 1))
builder = builder.config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={sys.argv[2]}")
builder = builder.config("spark.executor.extraJavaOptions", f"-Djava.io.tmpdir={sys.argv[2]}")
spark = tailrace.configure(builder, kafka_connector=False).getOrCreate()
twice = F.udf(lambda value: value * 2, "long")
total = sum(row[0] for row in spark.range(100).select(twice("id")).collect())
found = sockets()
folders = {str(one.parent): stat.S_IMODE(one.parent.stat().st_mode) for one in found}
print("FOUND", json.dumps({"total": total, "sockets": len(found), "folders": folders}), flush=True)
if sys.argv[3] == "kill":
    from pyspark import SparkContext
    os.kill(SparkContext._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
spark.stop()
"""


@pytest.fixture
def temporary() -> Iterator[Path]:
    """As short as a real one: the path of a socket has room for about a hundred bytes."""
    folder = Path(tempfile.mkdtemp(prefix="tr", dir="/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def run(temporary: Path, master: str = "local[2]", *settings: str, end: str = "stop") -> dict[str, Any]:
    done = run_python(APPLICATION, master, str(temporary), end, *settings, timeout_s=180)
    assert done.returncode == 0 or end == "kill", done.stderr
    found: dict[str, Any] = json.loads(done.stdout.partition("FOUND ")[2])
    assert found["total"] == 9900
    return found


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[1,2,1024]"])
def test_only_their_user_can_reach_them(temporary: Path, master: str) -> None:
    found = run(temporary, master)
    assert found["sockets"] >= 2
    assert set(found["folders"].values()) == {0o700}
    # The driver and each executor have their own.
    assert len(found["folders"]) == (1 if master.startswith("local[") else 2)
    assert [entry for entry in temporary.iterdir() if entry.name.startswith("tailrace-")] == []


def test_what_a_killed_driver_leaves_is_removed_by_the_next(temporary: Path) -> None:
    run(temporary, end="kill")
    [left] = temporary.glob("tailrace-sockets-*")
    os.utime(left, (0, 0))
    run(temporary)
    assert not left.exists()


def test_a_folder_of_the_users_own_is_used(temporary: Path) -> None:
    own = temporary / "own"
    own.mkdir(mode=0o700)
    found = run(temporary, "local[2]", f"spark.python.unix.domain.socket.dir={own}")
    assert list(found["folders"]) == [str(own)]
    assert stat.S_ISDIR(own.stat().st_mode), "it is not ours to delete"


def test_without_unix_sockets_there_is_no_folder(temporary: Path) -> None:
    found = run(temporary, "local[2]", "spark.python.unix.domain.socket.enabled=false")
    assert found["sockets"] == 0
