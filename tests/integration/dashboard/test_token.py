"""Where a token that is set on the session builder can be seen: nowhere but in the application's own process."""

from __future__ import annotations

import json
from pathlib import Path

from tests.helpers.processes import run_python

TOKEN = "geheimer-ausweis"

APPLICATION = """
import json, os, sys, urllib.request
from pathlib import Path
from pyspark.sql import SparkSession
import tailrace
from tailrace._process.process_table import all_processes

builder = SparkSession.builder.master("local[1]").config("spark.tailrace.dashboard.token", sys.argv[1])
builder = builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.compress", "false")
builder = builder.config("spark.eventLog.dir", sys.argv[2])
# Without Spark's own redaction of names with "token".
builder = builder.config("spark.redaction.regex", "nothing-at-all")
spark = tailrace.configure(builder, kafka_connector=False).config("spark.tailrace.dashboard.port", "0").getOrCreate()
[note] = (Path(os.environ["TAILRACE_STATE"]) / "dashboards").iterdir()
found = {
    "commands": [process.command for process in all_processes() if process.pid != os.getpid()],
    "settings": dict(spark.sparkContext.getConf().getAll()),
    "environment page": urllib.request.urlopen(spark.sparkContext.uiWebUrl + "/environment/").read().decode(),
    "token": json.loads(note.read_text())["token"],
}
spark.stop()
found["event log"] = "".join(file.read_text() for file in Path(sys.argv[2]).rglob("*") if file.is_file())
print("FOUND", json.dumps(found))
"""


def test_it_is_only_in_the_application_itself(tmp_path: Path) -> None:
    log = tmp_path / "events"
    log.mkdir()
    done = run_python(APPLICATION, TOKEN, str(log), env={"TAILRACE_STATE": str(tmp_path / "state")}, timeout_s=180)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.partition("FOUND ")[2])
    assert found.pop("token") == TOKEN, "the dashboard does not use it"
    assert any("java" in command for command in found["commands"])
    assert "spark.eventLog.enabled" in found["event log"]
    assert [place for place, shown in found.items() if TOKEN in json.dumps(shown)] == []
