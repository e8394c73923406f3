"""`tailrace run` with a real application on a real broker: killed, given a bad record, refused, drained."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace import EmbeddedKafka
from tests.helpers.processes import alive, command_line, descendants, environment
from tests.helpers.supervised import SupervisedRun
from tests.helpers.topics import Collector, ContinuousLoad, new_topic, produce
from tests.helpers.waiting import until

# A driver's start, on a machine that does other things as well.
START_S = 150

# A user's script: nothing in it knows of the supervisor.
SCRIPT = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
import tailrace

servers, source, sink, checkpoint, mode, output_mode = sys.argv[1:]

def score(text):
    if '"id": 7,' in text and mode == "bad record":
        raise ValueError("cannot score this one")
    if '"id": 7,' in text and mode == "hang":
        import pathlib, time
        pathlib.Path(checkpoint + ".hangs").touch()
        time.sleep(3600)
    return text

spark = tailrace.configure(SparkSession.builder.config("spark.ui.enabled", "false")).getOrCreate()
rows = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", servers)
    .option("subscribe", source)
    .option("startingOffsets", "earliest")
    .load()
    .select(F.udf(score)(F.col("value").cast("string")).alias("value"))
)
query = (
    rows.writeStream.queryName("scores").format("kafka")
    .option("kafka.bootstrap.servers", servers)
    .option("topic", sink)
    .option("checkpointLocation", checkpoint)
    .outputMode(output_mode)
    .trigger(realTime="10 minutes")
    .start()
)
print("the application says: started", flush=True)
if mode == "goes on":
    import time
    while True:
        time.sleep(1)
query.awaitTermination()
print("the application says: done", flush=True)
"""


class Application:
    """A script between two topics, and the options of its run."""

    def __init__(self, kafka: EmbeddedKafka, folder: Path) -> None:
        self.servers = kafka.bootstrap_servers
        self.source = new_topic(self.servers, "in")
        self.sink = new_topic(self.servers, "out")
        self.checkpoint = folder / "checkpoint"
        self._folder = folder
        self._script = folder / "app.py"
        self._script.write_text(SCRIPT)
        self._runs = 0

    def run(self, mode: str = "", *options: str, output_mode: str = "update") -> SupervisedRun:
        self._runs += 1
        folder = self._folder / str(self._runs)
        folder.mkdir()
        arguments = [self.servers, self.source, self.sink, str(self.checkpoint), mode, output_mode]
        settings = (f"spark.local.dir={folder}", "spark.my.password=geheim", "spark.tailrace.warmup.epochs=0")
        submit = ["--master", "local[4]", *(word for setting in settings for word in ("--conf", setting))]
        # The cache has the connector's jars.
        cache = {"TAILRACE_CACHE": os.environ.get("TAILRACE_CACHE", str(Path.home() / ".cache" / "tailrace"))}
        return SupervisedRun(*submit, *options, str(self._script), *arguments, folder=folder, env=cache)


@pytest.fixture
def application(kafka: EmbeddedKafka, tmp_path: Path) -> Application:
    return Application(kafka, tmp_path)


def is_ready(run: SupervisedRun) -> Callable[[], bool]:
    return lambda: run.ask("ready")[0] == 200


def driver_of(run: SupervisedRun) -> int:
    """The driver's JVM."""
    (driver,) = [
        pid for pid in descendants(run.process.pid) if "org.apache.spark.deploy.SparkSubmit" in command_line(pid)
    ]
    return driver


@pytest.mark.timeout(1800)
def test_killed_restarted_drained_and_run_again(application: Application) -> None:
    """Nothing is lost by the kill, and nothing comes twice by the drain."""
    with (
        Collector(application.servers, application.sink) as out,
        ContinuousLoad(application.servers, application.source, per_second=50) as load,
    ):
        with application.run() as run:
            until(is_ready(run), "rows flow", within_s=START_S)
            until(
                lambda: run.ask()[1]["application"]["queries"] == {"ready": ["scores"]}, "no backlog", within_s=START_S
            )
            token = token_of(run)
            assert not [pid for pid in descendants(run.process.pid) if token in command_line(pid)]

            os.kill(driver_of(run), signal.SIGKILL)
            until(lambda: run.ask("ready")[0] == 503, "it is not ready", within_s=START_S)
            code, health = run.ask()
            assert code == 200, "but the supervisor is well"
            incident = until(lambda: run.ask()[1]["last_incident"], "the incident", within_s=START_S)
            assert incident["code"] == "KILLED"
            assert health["state"] in ("running", "starting", "waiting to restart")
            before = len(out.rows())
            until(lambda: len(out.rows()) > before, "rows flow again", within_s=START_S)
            until(is_ready(run), "it is ready again", within_s=START_S)

            started = descendants(run.process.pid)
            run.process.send_signal(signal.SIGTERM)
            assert run.ends(within_s=START_S) == 0, run.said
            assert "the application says: done" in run.printed, "the script ended by itself"
            until(lambda: not [pid for pid in started if alive(pid)], "nothing is left")
            (report,) = run.reports()
            replay = report["read_again"]["scores"]
            assert replay["checkpoint"].endswith(str(application.checkpoint))
            assert "geheim" not in run.said + (run.incidents / "..").resolve().joinpath("said").read_text()
            assert [page for page in run.incidents.iterdir() if "geheim" in page.read_text()] == []
            assert token not in run.said + run.printed + "".join(p.read_text() for p in run.incidents.iterdir())

        # What came before the kill may be there twice; from here on nothing is.
        drained = len(out.rows())
        with application.run() as run:
            until(lambda: len(out.rows()) > drained + 100, "rows flow once more", within_s=START_S)
            load.stop()
            until(lambda: {row["id"] for row in out.rows()} == set(range(load.sent)), "all are out", within_s=START_S)
            run.process.send_signal(signal.SIGINT)
            assert run.ends(within_s=START_S) == 0, run.said
            assert run.reports() == []
        before_drain = {row["id"] for row in out.rows()[:drained]}
        after_drain = Counter(row["id"] for row in out.rows()[drained:])
        assert set(after_drain.values()) == {1}
        assert not before_drain & set(after_drain), "what was drained is not repeated"


def token_of(run: SupervisedRun) -> str:
    """As the application has reported it to its supervisor."""
    folder = Path(environment(driver_of(run))["TAILRACE_RUN_FOLDER"])
    assert folder.stat().st_mode & 0o077 == 0, "others can read the token"
    return str(re.findall(r'"token": "([^"]+)"', (folder / "dashboard.json").read_text())[0])


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_record_that_fails_twice_ends_the_run(application: Application) -> None:
    produce(application.servers, application.source, [{"id": number, "key": "a"} for number in range(10)])
    with application.run("bad record") as run:
        assert run.ends(within_s=2 * START_S) == 3, run.said
        first, second = run.reports()
        assert "restart 1 of 10" in first["next_step"]
        assert "same record" in second["next_step"]
        for report in (first, second):
            assert (report["code"], report["query"]) == ("PYTHON_EXCEPTION", "scores")
            assert report["problem"] == "ValueError: cannot score this one"
            (place,) = report["records"]
            assert (place["topic"], place["first"], place["last"]) == (application.source, 7, 7)
        page = sorted(run.incidents.glob("*.md"))[-1].read_text()
        assert re.search(rf"topic {application.source}, partition [01], offset 7\b", page)
        assert "scores" in page
        assert "Traceback" in page


@pytest.mark.timeout(1800)
def test_what_is_refused_at_the_start_is_not_tried_again(application: Application) -> None:
    with application.run(output_mode="complete") as run:
        assert run.ends(within_s=START_S) == 3, run.said
        (report,) = run.reports()
        assert report["code"] == "TAILRACE_OUTPUT_MODE"
        assert 'outputMode("update")' in report["fix"]
        assert run.printed.count("Traceback") == 1


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_function_that_hangs_cannot_be_drained(application: Application) -> None:
    produce(application.servers, application.source, [{"id": number, "key": "a"} for number in range(8)])
    with application.run("hang", "--drain-timeout", "3") as run:
        until(Path(f"{application.checkpoint}.hangs").exists, "it hangs", within_s=START_S)
        run.process.send_signal(signal.SIGTERM)
        assert run.ends(within_s=START_S) == 5, run.said
        (report,) = run.reports()
        assert report["code"] == "TAILRACE_DRAIN_TIMEOUT"


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_query_that_is_down_while_the_script_goes_on(application: Application, tmp_path: Path) -> None:
    with (
        application.run("goes on", "--query-grace", "1") as run,
        Collector(application.servers, application.sink) as out,
    ):
        produce(application.servers, application.source, [{"id": 1, "key": "a"}])
        until(is_ready(run), "rows flow", within_s=START_S)
        workers = [pid for pid in descendants(run.process.pid) if "tailrace_worker.daemon" in command_line(pid)]
        for pid in workers:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        incident = until(lambda: run.ask()[1]["last_incident"], "the incident", within_s=START_S)
        assert incident["query"] == "scores"
        until(is_ready(run), "rows flow again", within_s=START_S)
        produce(application.servers, application.source, [{"id": 2, "key": "a"}])
        until(lambda: {row["id"] for row in out.rows()} == {1, 2}, "all rows are out", within_s=START_S)
        run.process.send_signal(signal.SIGTERM)
        # Its script never ends by itself.
        assert run.ends(within_s=START_S) == 0, run.said
