"""The dashboard and `tailrace top` on a real query."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect, sync_playwright
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import EmbeddedKafka, TailraceError
from tailrace.dashboard import serve
from tests.helpers.browser import ARGUMENTS, browser_path
from tests.helpers.pipeline import Pipeline
from tests.helpers.processes import run_python
from tests.helpers.processes import tailrace as tailrace_cli
from tests.helpers.waiting import until


@pytest.fixture(scope="module")
def query(
    spark: SparkSession, kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StreamingQuery]:
    """An aggregation that has worked off some rows."""
    pipeline = Pipeline(spark, kafka, tmp_path_factory.mktemp("live") / "checkpoint")
    pipeline.send(range(200))
    with pipeline.running(pipeline.counts(), epoch="5 minutes") as started:
        until(lambda: rows_out(started) == 200, "rows")
        # Rows are counted when the sink gets them, and timed when the broker has acknowledged them.
        until(lambda: tailrace.latency(started, "run").figure("end_to_end"), "their latency")
        yield started


def rows_out(query: StreamingQuery) -> int:
    return int(tailrace.latency(query).to_dict()["windows"]["run"]["rows_out"])


@pytest.fixture(autouse=True)
def no_query_left() -> None:
    """The query is the module's, and stays between its tests."""


@pytest.fixture(scope="module")
def url(spark: SparkSession, query: StreamingQuery) -> Iterator[str]:
    served = tailrace.dashboard(spark)
    yield served.url
    served.stop()


def get(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_the_figures_are_served(url: str, query: StreamingQuery) -> None:
    assert url.startswith("http://127.0.0.1:")
    status, text = get(f"{url}api/snapshot")
    assert status == 200
    [figures] = json.loads(text)["queries"]
    assert figures["run_id"] == str(query.runId)
    assert figures["windows"]["run"]["rows_out"] == 200
    timed = figures["windows"]["run"]["end_to_end"]["count"]
    assert 0 < timed <= 200
    status, text = get(f"{url}api/queries/{query.runId}/history")
    history = json.loads(text)
    assert status == 200
    assert sum(history["rows_out"]) == 200
    assert sum(map(sum, history["heatmap"]["counts"])) == timed


def test_metrics_and_health(url: str, query: StreamingQuery) -> None:
    status, text = get(f"{url}metrics")
    assert status == 200
    assert f'tailrace_rows_written_total{{query="{query.id}"}} 200.0' in text
    assert f'tailrace_rows_read_total{{query="{query.id}"}} 200.0' in text
    assert 'figure="end_to_end",quantile="0.99"' in text
    assert json.loads(get(f"{url}health")[1])["status"] == "ready"


def test_the_page_shows_it(url: str, query: StreamingQuery) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=list(ARGUMENTS))
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(url)
        expect(page.get_by_text("groupBy().agg(), window(…)").first).to_be_visible(timeout=120_000)
        expect(page.get_by_text("kafka", exact=True).first).to_be_visible()
        page.get_by_role("button", name="Whole run").or_(page.get_by_label("Whole run")).first.click()
        expect(page.get_by_text("Stage 1").first).to_be_visible()
        browser.close()
    assert errors == []


def test_asked_again_it_is_the_same(url: str, spark: SparkSession) -> None:
    assert tailrace.dashboard(spark).url == url


def test_a_port_that_is_taken(url: str, spark: SparkSession, query: StreamingQuery) -> None:
    with pytest.raises(TailraceError, match="TAILRACE_PORT_TAKEN"):
        # As another application would: this one already has its page there.
        serve(tailrace.monitor.monitor_of(spark), port=int(url.rstrip("/").rpartition(":")[2]))


class TestTop:
    def test_it_finds_the_application_on_this_machine(self, url: str, query: StreamingQuery) -> None:
        result = tailrace_cli("top", "--once", "--window", "run")
        assert result.returncode == 0, result.stderr
        assert [word for word in (str(query.id), "end to end", "stage 1", "p99.9") if word not in result.stdout] == []
        assert "\x1b[" not in result.stdout, "color only on a terminal"

    def test_by_address_and_as_json(self, url: str, query: StreamingQuery) -> None:
        result = tailrace_cli("top", url, "--json")
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["queries"][0]["run_id"] == str(query.runId)

    def test_only_one_query(self, url: str) -> None:
        assert "there is no query 'nobody'" in tailrace_cli("top", url, "--once", "--query", "nobody").stdout

    def test_live_on_a_terminal_until_interrupted(self, url: str, query: StreamingQuery, tmp_path: Path) -> None:
        # `script` gives it a terminal.
        output = tmp_path / "typescript"
        command = f"{sys.executable} -m tailrace top {url} --window run"
        top = subprocess.Popen(
            ["script", "--quiet", "--flush", "--command", command, str(output)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "50"},
        )
        assert top.stdin is not None
        until(lambda: output.exists() and output.read_text().count("end to end") >= 2, "two pictures")
        top.stdin.write(b"\x03")
        top.stdin.flush()
        assert top.wait(timeout=120) in (0, 130)
        assert "Traceback" not in output.read_text()

    def test_nobody_there(self, tmp_path: Path) -> None:
        result = tailrace_cli("top", env={"TAILRACE_STATE": str(tmp_path)})
        assert result.returncode == 1
        assert "TAILRACE_NOTHING_TO_WATCH" in result.stderr

    @pytest.mark.parametrize("address", ["http://127.0.0.1:1", "file:///etc/passwd", "127.0.0.1:1"])
    def test_an_address_that_does_not_answer(self, address: str) -> None:
        result = tailrace_cli("top", address, "--once")
        assert result.returncode == 1
        assert "TAILRACE_DASHBOARD_UNREACHABLE" in result.stderr
        assert "Traceback" not in result.stderr

    def test_notes_of_processes_that_are_gone_are_removed(self, tmp_path: Path) -> None:
        note = tmp_path / "dashboards" / "old.json"
        note.parent.mkdir()
        note.write_text(json.dumps({"url": "http://127.0.0.1:1", "application": "old", "pid": 2**22 + 1}))
        assert tailrace_cli("top", env={"TAILRACE_STATE": str(tmp_path)}).returncode == 1
        assert not note.exists()


AUTOMATIC = """
import os, urllib.request
from pathlib import Path
from pyspark.sql import SparkSession
import tailrace
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config({key!r}, {value!r})
spark = tailrace.configure(builder, kafka_connector=False).getOrCreate()
[note] = (Path(os.environ["TAILRACE_STATE"]) / "dashboards").iterdir()
print(urllib.request.urlopen(tailrace.dashboard(spark).url + "health").read().decode())
"""


def test_it_starts_with_the_session_if_asked_and_leaves_no_note(tmp_path: Path) -> None:
    code = AUTOMATIC.format(key="spark.tailrace.dashboard.port", value="0")
    result = run_python(code, env={"TAILRACE_STATE": str(tmp_path)})
    assert result.returncode == 0, result.stderr
    assert "Dashboard: http://127.0.0.1:" in result.stderr
    assert '"status":"idle"' in result.stdout
    assert list((tmp_path / "dashboards").iterdir()) == []


def test_a_port_that_is_none(tmp_path: Path) -> None:
    code = AUTOMATIC.format(key="spark.tailrace.dashboard.port", value="http")
    result = run_python(code, env={"TAILRACE_STATE": str(tmp_path)})
    assert result.returncode != 0
    assert "TAILRACE_BAD_SETTING" in result.stderr


def test_without_the_extra_there_is_a_clear_message(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tailrace.dashboard.server", "starlette", "uvicorn"):
        monkeypatch.setitem(sys.modules, name, None)
    monitor: Any = tailrace.monitor.monitor_of(spark)
    with pytest.raises(TailraceError, match=r"pip install 'tailrace\[web\]'"):
        serve(monitor)
