"""`configure` merges, never overwrites, and raises a clear error if it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import tailrace
from tailrace import TailraceError
from tailrace._spark.defaults import REAL_TIME_DEFAULTS
from tailrace._spark.driver_jvm import COLLECTOR, OPTIONS_KEY
from tailrace._spark.plugin import EXTENSION_CLASS, PLUGIN_CLASS, plugin_jar
from tests.helpers.processes import Completed, run_python


def configured(script: str, **env: str) -> Completed:
    """Run a script that begins with the usual imports, as an application of its own."""
    return run_python("import tailrace\nfrom pyspark.sql import SparkSession\n" + textwrap.dedent(script), env=env)


def said(result: Completed) -> dict[str, list[str]]:
    """The words of each line of a script, by what is before its colon."""
    assert result.returncode == 0, result.stderr
    return {name: words.split() for name, _, words in (line.partition(":") for line in result.stdout.splitlines())}


class TestOptions:
    """What configure puts on the builder, seen without starting Spark."""

    @pytest.fixture(autouse=True)
    def no_jvm(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As in a fresh process: another module's session may have left its JVM behind."""
        assert SparkContext._active_spark_context is None, "this module must not start a session"
        monkeypatch.setattr(SparkContext, "_gateway", None)

    def options(self, **users: str) -> dict[str, str]:
        builder = SparkSession.builder.config(map={key.replace("__", "."): value for key, value in users.items()})
        return tailrace.configure(builder)._options

    def test_builder_in_builder_out(self) -> None:
        builder = SparkSession.builder
        result = tailrace.configure(builder)
        assert isinstance(result, SparkSession.Builder)
        assert result._options is builder._options

    def test_it_brings_the_plugin_the_connector_and_the_defaults(self) -> None:
        options = self.options()
        assert options["spark.plugins"] == PLUGIN_CLASS
        assert options["spark.sql.extensions"] == EXTENSION_CLASS
        jars = options["spark.jars"].split(",")
        assert jars[0] == str(plugin_jar())
        assert any("spark-sql-kafka" in jar for jar in jars)
        assert {default.key: options[default.key] for default in REAL_TIME_DEFAULTS} == {
            default.key: default.value for default in REAL_TIME_DEFAULTS
        }

    def test_lists_are_merged(self) -> None:
        options = self.options(spark__plugins="a.B", spark__sql__extensions="c.D,e.F", spark__jars="/x.jar")
        assert options["spark.plugins"] == f"a.B,{PLUGIN_CLASS}"
        assert options["spark.sql.extensions"] == f"c.D,e.F,{EXTENSION_CLASS}"
        assert options["spark.jars"].startswith("/x.jar,")

    def test_the_driver_s_collector(self) -> None:
        assert self.options()[OPTIONS_KEY] == COLLECTOR
        assert self.options(spark__driver__extraJavaOptions="-Dmine=1")[OPTIONS_KEY] == f"-Dmine=1 {COLLECTOR}"
        for users in ("-XX:+UseG1GC", "-Dmine=1 -XX:+UseZGC -Dyours=2"):
            assert self.options(spark__driver__extraJavaOptions=users)[OPTIONS_KEY] == users
        assert OPTIONS_KEY not in self.options(spark__driver__defaultJavaOptions="-XX:+UseSerialGC")

    def test_a_collector_in_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With two collectors a JVM does not start."""
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g -XX:+UseSerialGC")
        assert OPTIONS_KEY not in self.options()

    def test_twice_is_once(self) -> None:
        builder = tailrace.configure(tailrace.configure(SparkSession.builder))
        assert builder._options["spark.plugins"] == PLUGIN_CLASS
        assert builder._options["spark.jars"].count("tailrace-plugin.jar") == 1
        assert builder._options[OPTIONS_KEY] == COLLECTOR

    def test_a_users_value_wins(self) -> None:
        key = REAL_TIME_DEFAULTS[0].key
        assert self.options(**{key.replace(".", "__"): "50"})[key] == "50"

    def test_spark_defaults_conf_is_merged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        key = REAL_TIME_DEFAULTS[0].key
        (tmp_path / "spark-defaults.conf").write_text(
            f"# comment\nspark.plugins\ta.B\nspark.jars=/a.jar, \\\n  /b.jar\nspark.sql.extensions : c.D\n{key} = 33\n"
        )
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
        options = self.options()
        assert options["spark.plugins"] == f"a.B,{PLUGIN_CLASS}"
        assert options["spark.sql.extensions"] == f"c.D,{EXTENSION_CLASS}"
        assert options["spark.jars"].startswith("/a.jar,/b.jar,")
        assert key not in options, "the file's value must stay in force"

    def test_submit_arguments_are_merged(self, monkeypatch: pytest.MonkeyPatch) -> None:
        arguments = "--jars /a.jar --conf spark.plugins=a.B --conf spark.x=1=2 pyspark-shell"
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
        options = self.options()
        assert options["spark.jars"].startswith("/a.jar,")
        assert options["spark.plugins"] == f"a.B,{PLUGIN_CLASS}"

    def test_a_properties_file_is_merged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "my.conf").write_text("spark.plugins a.B\n")
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {tmp_path / 'my.conf'} pyspark-shell")
        assert self.options()["spark.plugins"] == f"a.B,{PLUGIN_CLASS}"

    def test_a_users_own_connector_is_respected(self) -> None:
        options = self.options(spark__jars__packages="org.example:spark-sql-kafka-0-10_2.13:9.9")
        assert options["spark.jars"] == str(plugin_jar())

    def test_the_connector_can_be_left_out(self) -> None:
        options = tailrace.configure(SparkSession.builder, kafka_connector=False)._options
        assert options["spark.jars"] == str(plugin_jar())

    def test_local_cluster_waits_for_its_executors(self) -> None:
        assert self.options(spark__master="local-cluster[2, 3, 1024]")["spark.cores.max"] == "6"

    @pytest.mark.parametrize(
        ("options", "environment"),
        [
            ({"spark.remote": "sc://localhost"}, {}),
            ({"spark.api.mode": "connect"}, {}),
            ({}, {"SPARK_REMOTE": "sc://localhost"}),
        ],
    )
    def test_spark_connect_is_refused(
        self, options: dict[str, str], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(TailraceError) as failure:
            tailrace.configure(SparkSession.builder.config(map=options))  # type: ignore[arg-type]
        assert failure.value.code == "TAILRACE_CONNECT_NOT_SUPPORTED"


ANOTHER_VERSION = """
    builder = tailrace.configure(SparkSession.builder.master("local[1]"))
    builder._options["spark.tailrace.clientVersion"] = "0.0.1"
    try:
        builder.getOrCreate()
    except tailrace.TailraceError as error:
        print("another version:", error.code, "0.0.1" in error.problem)
"""
# What each part of a script prints; one process for several, because each has to start a JVM.
NO_PLUGIN_YET = """
    SparkSession.builder.master("local[1]").getOrCreate()
    try:
        tailrace.configure(SparkSession.builder)
    except tailrace.TailraceError as error:
        print("live without the plugin:", error.code, error.getCondition())
    SparkSession.active().stop()
"""
LEFT_BEHIND = """
    spark = tailrace.configure(SparkSession.builder.master("local[1]")).getOrCreate()
    stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "x:1")
    print("the JVM is used:", "offset" in stream.option("subscribe", "t").load().columns)
"""
FROM_THE_START = """
    options = tailrace.configure(SparkSession.builder.master("local[1]"))._options
    del options["spark.tailrace.clientVersion"]
    try:
        SparkSession.builder.config(map=options).getOrCreate()
    except Exception as error:
        print("by hand:", tailrace.TailraceError.find_in(str(error)).code)

    builder = tailrace.configure(SparkSession.builder.master("local[1]"))
    first = builder.config("spark.plugins", "").config("spark.sql.extensions", "").getOrCreate()
    print("set later:", first.conf.get("spark.plugins"), first.conf.get("spark.sql.extensions"))

    print("reused:", tailrace.configure(SparkSession.builder).getOrCreate() is first)

    handshake = first._jvm.tailrace.Handshake
    option = getattr(first._jvm, "scala").Some(tailrace.__version__)
    handshake.check(option, first.version)
    try:
        handshake.check(option, "4.9.9")
    except Exception as error:
        print("another Spark:", tailrace.TailraceError.find_in(str(error)).code)
"""


@pytest.fixture(scope="module")
def fresh() -> dict[str, list[str]]:
    """In a JVM that was started with the plugin."""
    return said(configured(FROM_THE_START))


@pytest.fixture(scope="module")
def left_behind() -> dict[str, list[str]]:
    """In a JVM of a session without it; also, from there on PySpark wraps the JVM's exceptions."""
    return said(configured(NO_PLUGIN_YET + ANOTHER_VERSION + LEFT_BEHIND))


class TestRunningSession:
    """What happens when Spark is started, or was started before."""

    def test_a_live_session_without_the_plugin_is_an_error(self, left_behind: dict[str, list[str]]) -> None:
        assert left_behind["live without the plugin"] == ["TAILRACE_SESSION_ALREADY_RUNNING"] * 2

    def test_a_live_session_with_the_plugin_is_reused(self, fresh: dict[str, list[str]]) -> None:
        assert fresh["reused"] == ["True"]

    def test_a_jvm_that_an_earlier_session_left_behind_is_used(self, left_behind: dict[str, list[str]]) -> None:
        assert left_behind["the JVM is used"] == ["True"]

    def test_spark_submit(self, tmp_path: Path) -> None:
        """The JVM is already there when the script runs: the driver gets the jars late, and the user's too."""
        script = tmp_path / "app.py"
        script.write_text(
            "import tailrace\n"
            "from pyspark.sql import SparkSession\n"
            "spark = tailrace.configure(SparkSession.builder).getOrCreate()\n"
            "print('plugin', spark._jvm.tailrace.BuildInfo.version())\n"
            "print('plugins', spark.conf.get('spark.plugins'))\n"
            "print('kept', spark.conf.get('spark.shuffle.streaming.networkBufferMaxWaitTimeMs'))\n"
        )
        binaries = Path(sys.executable).parent
        result = subprocess.run(
            [
                *(binaries / "spark-submit", "--master", "local[1]"),
                *("--conf", "spark.shuffle.streaming.networkBufferMaxWaitTimeMs=7", script),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            env={**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "PYSPARK_PYTHON": sys.executable},
            check=False,
        )
        assert f"plugin {tailrace.__version__}" in result.stdout, result.stderr
        assert f"plugins {PLUGIN_CLASS}" in result.stdout
        assert "kept 7" in result.stdout
        # Too late for the driver's JVM. spark-submit sends what Python says to its own standard output.
        assert f"--driver-java-options '{COLLECTOR}'" in result.stdout

    @pytest.mark.chaos
    def test_a_standalone_master_and_its_executors(self, tmp_path: Path) -> None:
        """Executors get the jars: a real-time aggregation runs on them, with both its stages at once."""
        result = configured(
            """
            import os, subprocess, sys
            from tailrace.kafka import free_port
            from confluent_kafka import Consumer, Producer, TopicPartition
            from tailrace import EmbeddedKafka
            import pyspark

            home, port = os.path.dirname(pyspark.__file__), free_port()
            spark_class = os.path.join(home, "bin", "spark-class")
            url = f"spark://127.0.0.1:{port}"
            master = ["org.apache.spark.deploy.master.Master", "-h", "127.0.0.1", "-p", str(port), "--webui-port", "0"]
            worker = ["org.apache.spark.deploy.worker.Worker", url, "-h", "127.0.0.1", "-c", "4", "-m", "1g",
                      "-d", os.environ["WORK"], "--webui-port", "0"]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            daemons = [subprocess.Popen([spark_class, *arguments], **quiet) for arguments in (master, worker)]
            try:
                with EmbeddedKafka() as kafka:
                    kafka.create_topics(["in", "out"], partitions=2)
                    builder = SparkSession.builder.master(url).config("spark.cores.max", "4")
                    builder = builder.config("spark.sql.shuffle.partitions", "2")
                    spark = tailrace.configure(builder.config("spark.driver.host", "127.0.0.1")).getOrCreate()
                    servers = kafka.bootstrap_servers
                    rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
                    counts = rows.option("subscribe", "in").load().groupBy("key").count()
                    query = (counts.selectExpr("CAST(count AS STRING) AS value").writeStream.format("kafka")
                        .option("kafka.bootstrap.servers", servers).option("topic", "out").outputMode("update")
                        .option("checkpointLocation", os.environ["WORK"] + "/checkpoint")
                        .trigger(realTime="60 seconds").start())
                    producer = Producer({"bootstrap.servers": servers})
                    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g"})
                    consumer.assign([TopicPartition("out", partition, 0) for partition in (0, 1)])
                    answer = None
                    for _ in range(60):
                        # The query starts at the newest offset: send until it is there to see it.
                        producer.produce("in", key=b"k", value=b"v")
                        producer.flush()
                        answer = consumer.poll(1)
                        if answer is not None:
                            break
                    print("answer", answer and answer.value().decode())
                    consumer.close()
                    query.stop()
                    spark.stop()
            finally:
                for daemon in reversed(daemons):
                    daemon.terminate()
                    daemon.wait()
            """,
            WORK=str(tmp_path),
        )
        assert "answer 1" in result.stdout, result.stderr

    def test_what_is_set_after_configure_is_merged_too(self, fresh: dict[str, list[str]]) -> None:
        assert fresh["set later"] == [PLUGIN_CLASS, EXTENSION_CLASS]

    def test_another_versions_plugin_is_refused(self, left_behind: dict[str, list[str]]) -> None:
        for lines in (left_behind, said(configured(ANOTHER_VERSION))):
            assert lines["another version"] == ["TAILRACE_VERSION_MISMATCH", "True"]

    def test_the_plugin_by_hand_is_refused(self, fresh: dict[str, list[str]]) -> None:
        assert fresh["by hand"] == ["TAILRACE_NOT_CONFIGURED"]

    def test_another_spark_is_refused(self, fresh: dict[str, list[str]]) -> None:
        assert fresh["another Spark"] == ["TAILRACE_SPARK_VERSION_MISMATCH"]

    def test_a_missing_jar_fails_the_start(self) -> None:
        """Fail closed: without the plugin's classes there is no session that only looks like one."""
        result = configured(
            """
            options = tailrace.configure(SparkSession.builder.master("local[1]"))._options
            SparkSession.builder.config(map={**options, "spark.jars": ""}).getOrCreate()
            """
        )
        assert result.returncode != 0
        assert "ClassNotFoundException: tailrace.TailracePlugin" in result.stderr


INTERRUPTED = """
import signal, sys
from pathlib import Path
from pyspark.sql import SparkSession
import tailrace
from tailrace._spark.logged_session import start_with_log
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = start_with_log(tailrace.configure(builder), Path({log!r}))
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 1)
try:
    spark._jvm.java.lang.Thread.sleep(20000)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_in_the_middle_of_a_call_prints_no_stack_trace(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    result = run_python(INTERRUPTED.format(log=str(log)))
    assert result.stdout.splitlines()[-1:] == ["interrupted"], result.stderr
    assert "Traceback" not in result.stderr
    assert "KeyboardInterrupt" in log.read_text(), "what Py4J has to say about it"
