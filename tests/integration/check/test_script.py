"""`tailrace check app.py` and `tailrace explain app.py`: the user's own script, without its streams."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace import EmbeddedKafka
from tests.helpers.processes import tailrace
from tests.helpers.topics import new_topic

APP = """
import sys
from pyspark.sql import SparkSession, functions as F

servers, topic, folder = sys.argv[1:4]
spark = SparkSession.builder.master("local[4]").config("spark.sql.shuffle.partitions", 2).getOrCreate()
rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic).load()
values = rows.select(F.col("key").cast("string"), F.col("value").cast("string"))
counts = values.groupBy("key").count()
ordered = counts.orderBy("count")
print("printed by the script")


def write(query, name):
    out = query.select(F.to_json(F.struct("*")).alias("value")).writeStream.format("kafka").queryName(name)
    out = out.option("kafka.bootstrap.servers", servers).option("topic", "nowhere").outputMode("update")
    return out.option("checkpointLocation", f"{folder}/{name}").trigger(realTime="5 minutes")


first = write(counts, "counts").start()
assert first.lastProgress is None and not first.isActive
write(ordered, "ordered").start()
values.writeStream.format("parquet").option("path", f"{folder}/files").start()
spark.streams.awaitAnyTermination()
first.awaitTermination()
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    script = tmp_path_factory.mktemp("app") / "app.py"
    script.write_text(APP)
    return script


@pytest.fixture
def arguments(kafka: EmbeddedKafka, tmp_path: Path) -> list[str]:
    return [kafka.bootstrap_servers, new_topic(kafka.bootstrap_servers, "in"), str(tmp_path)]


def line_of(text: str) -> str:
    return f"app.py:{1 + next(number for number, line in enumerate(APP.splitlines()) if text in line)}"


def test_every_query_of_a_script_is_checked(app: Path, arguments: list[str], tmp_path: Path) -> None:
    result = tailrace("check", "--json", str(app), *arguments)
    assert result.returncode == 1, result.stderr
    report = json.loads(result.stdout)
    assert "printed by the script" in result.stderr
    assert report["blocked"] is True
    [counts, ordered] = report["queries"]
    assert (counts["name"], counts["blocked"], counts["slots"]) == ("counts", False, 4)
    assert counts["started_at"] == line_of('first = write(counts, "counts")')
    [sort, slots] = [finding for finding in ordered["findings"] if finding["severity"] == "blocking"]
    assert (sort["code"], sort["line"]) == ("TAILRACE_UNSUPPORTED_OPERATOR", line_of("ordered = counts"))
    assert slots["code"] == "TAILRACE_TOO_FEW_SLOTS"
    assert "4 by 'counts'" in slots["detail"], "both would run at the same time"
    assert report["micro_batch"] == [line_of("values.writeStream")]
    assert list(tmp_path.iterdir()) == [], "neither sinks nor checkpoints are touched"
    assert list(app.parent.iterdir()) == [app]


def test_a_clear_script_from_micro_batch(app: Path, arguments: list[str], tmp_path: Path) -> None:
    clear = tmp_path / "clear.py"
    kept = [line for line in APP.splitlines() if not line.startswith(("write(ordered", "values.writeStream"))]
    clear.write_text("\n".join(kept).replace('realTime="5 minutes"', 'processingTime="1 second"'))
    result = tailrace("check", "--from-microbatch", str(clear), *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "counts at clear.py" in result.stdout
    assert "clear (" in result.stdout
    assert 'use .trigger(realTime="5 minutes") instead' in result.stdout
    assert "\x1b" not in result.stdout, "color only on a terminal"


def test_a_script_that_fails_by_itself(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import os\nos.environ['NOT_THERE_AT_ALL']\n")
    result = tailrace("check", str(script))
    assert result.returncode == 1
    asked = tmp_path / "asked.py"
    asked.write_text("import sys\nsys.exit('which broker?')\n")
    assert "which broker?" in tailrace("check", str(asked)).stderr
    assert "TAILRACE_SCRIPT_FAILED" in result.stderr
    assert 'broken.py", line 2' in result.stderr, "the user's own traceback"


def test_a_script_without_a_stream(tmp_path: Path) -> None:
    script = tmp_path / "nothing.py"
    script.write_text("print('nothing')\n")
    result = tailrace("check", str(script))
    assert result.returncode == 1
    assert "TAILRACE_NO_QUERY" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("wrong", [["check"], ["check", "no-such-file.py"], ["check", "--from-micro-batch", __file__]])
def test_wrong_usage(wrong: list[str]) -> None:
    assert tailrace(*wrong).returncode == 2


def test_the_stages_of_a_script(app: Path, arguments: list[str], tmp_path: Path) -> None:
    picture = tmp_path.parent / "plan.svg"
    result = tailrace("explain", "--query", "counts", "--output", str(picture), str(app), *arguments)
    assert result.returncode == 0, result.stderr
    assert "groupBy().agg()" in picture.read_text()
    assert line_of("counts = values") in picture.read_text()
    assert list(tmp_path.iterdir()) == []
