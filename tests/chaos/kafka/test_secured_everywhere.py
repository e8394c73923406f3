"""The long tests on a secured broker: no secret anywhere, and the commands that take minutes."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tailrace._process.paths import cache_folder
from tailrace.kafka import EmbeddedKafka, KafkaCluster, KafkaSecurity, Login, free_port, require_broker
from tests.helpers.processes import tailrace
from tests.helpers.secured import USER, Secured, properties_file
from tests.helpers.supervised import SupervisedRun
from tests.helpers.waiting import until

PASSWORD = "changeit"
# Those that are there already.
JARS = {"TAILRACE_CACHE": str(cache_folder("jars").parent)}

SCRIPT = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from tailrace import configure
from tailrace.kafka import KafkaCluster

config, source, output, folder, port = sys.argv[1:]
builder = SparkSession.builder.master("local[4]").config("spark.ui.port", "0")
builder = builder.config("spark.tailrace.dashboard.port", port).config("spark.eventLog.enabled", "true")
builder = builder.config("spark.eventLog.dir", folder + "/events").config("spark.eventLog.compress", "false")
spark = configure(builder).getOrCreate()
spark.sparkContext.setLogLevel("INFO")
options = KafkaCluster.from_file(config).spark_options()

def fail_on_bad(text):
    return text if text != "bad" else str(1 / 0)

from pyspark.sql import functions as F
rows = spark.readStream.format("kafka").options(**options).option("subscribe", source)
rows = rows.option("startingOffsets", "earliest").load().select(F.udf(fail_on_bad)(F.col("value").cast("string")).alias("value"))
query = rows.writeStream.format("tailrace-kafka").options(**options).option("topic", output).queryName("secured")
query = query.option("transactionInterval", "20ms").option("checkpointLocation", folder + "/checkpoint")
query = query.outputMode("update").trigger(realTime="5 minutes").start()
query.explain(True)
Path(folder, "ui").write_text(spark.sparkContext.uiWebUrl)
query.awaitTermination()
"""  # noqa: E501


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(security=KafkaSecurity(users=(USER,))) as kafka:
        yield kafka


def page(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def test_no_secret_in_plan_page_log_report_or_process_list(broker: EmbeddedKafka, tmp_path: Path) -> None:
    world = Secured(broker, tmp_path)
    script, port = tmp_path / "app.py", free_port()
    script.write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "events").mkdir()
    arguments = (str(broker.client_config(USER)), world.input, world.output, str(tmp_path), str(port))
    seen: dict[str, str] = {}
    with SupervisedRun("--restarts", "0", str(script), *arguments, folder=tmp_path, env=JARS) as run:
        world.send("1", "2")
        until(lambda: run.process.poll() is not None or world.written() == ["1", "2"], "the rows are there")
        assert run.process.poll() is None, run.said
        for process in psutil.process_iter(["cmdline"]):
            seen[f"process {process.pid}"] = " ".join(process.info["cmdline"] or ())
        ui = until(lambda: (tmp_path / "ui").exists() and (tmp_path / "ui").read_text(), "the address of the pages")
        [application] = json.loads(page(f"{ui}/api/v1/applications"))
        api = f"{ui}/api/v1/applications/{application['id']}"
        for address in (
            *(f"{ui}/{name}/" for name in ("StreamingQuery", "SQL", "environment", "jobs", "stages")),
            *(f"{ui}/SQL/execution/?id={number}" for number in range(2)),
            f"{api}/environment",
            f"{api}/sql?details=true&planDescription=true",
            *(f"http://127.0.0.1:{port}/{name}" for name in ("", "api/snapshot", "metrics", "health")),
        ):
            seen[address] = page(address)
        world.send("bad")
        assert run.ends(within_s=300) != 0
        log, reports = run.log, run.reports()
    assert reports
    seen["log"] = log.read_text(encoding="utf-8", errors="replace")
    assert "ProducerConfig values" in seen["log"]
    for file in tmp_path.rglob("*"):
        if file.is_file():
            seen[str(file)] = file.read_bytes().decode(errors="replace")
    assert any("WriteToDataSourceV2" in text for text in seen.values())
    leaks = [name for name, text in seen.items() if any(secret in text for secret in broker.secrets())]
    assert leaks == []


def test_check_of_a_script_and_doctor_with_client_properties(broker: EmbeddedKafka, tmp_path: Path) -> None:
    world = Secured(broker, tmp_path)
    script = tmp_path / "app.py"
    script.write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "events").mkdir()
    config = str(broker.client_config(USER))
    arguments = (str(script), config, world.input, world.output, str(tmp_path), "0")
    checked = tailrace("check", "--json", *arguments)
    assert checked.returncode == 0, checked.stderr
    # Another user, who has no rights at all, in the place of the script's own.
    broker.revoke(USER, "write", "topic", world.output)
    refused = tailrace("check", "--json", *arguments)
    [query] = json.loads(refused.stdout)["queries"]
    assert [one["code"] for one in query["findings"] if one["severity"] == "blocking"] == ["TAILRACE_KAFKA_ACL_MISSING"]
    as_admin = tailrace("check", "--json", "--kafka-config", str(broker.client_config()), *arguments)
    assert as_admin.returncode == 0, as_admin.stdout
    doctor = tailrace("doctor", "--kafka-config", config, "--json")
    [found] = [one for one in json.loads(doctor.stdout)["requirements"] if one["name"] == "Kafka broker"]
    assert found["ok"]
    for said in (checked, refused, as_admin, doctor):
        assert not any(secret in said.stdout + said.stderr for secret in broker.secrets())


@pytest.mark.parametrize("store", ["PEM", "PKCS12", "JKS"])
def test_a_query_with_a_certificate(broker: EmbeddedKafka, spark: SparkSession, tmp_path: Path, store: str) -> None:
    world = Secured(broker, tmp_path)
    options = world.options(Login.CERTIFICATE)
    if store != "PEM":
        options |= _stores(options, tmp_path, store)
    query = world.writer(spark, options).start()
    world.send("1", "bad")
    until(lambda: world.written() == ["1"] and world.written(world.letters) == ["bad"], "row and letter are there")
    query.stop()
    client = {key.removeprefix("kafka."): value for key, value in options.items()}
    if store != "JKS":
        assert require_broker(KafkaCluster(client["bootstrap.servers"], client)) == 1


def _stores(options: dict[str, str], folder: Path, kind: str) -> dict[str, str]:
    """The same key and certificate in stores of the other kinds, made with OpenSSL and keytool."""
    key, trusted = options["kafka.ssl.keystore.location"], options["kafka.ssl.truststore.location"]
    p12, store, trust = folder / "key.p12", folder / f"key.{kind}", folder / f"trust.{kind}"
    openssl = [
        "openssl",
        "pkcs12",
        "-export",
        "-in",
        key,
        "-out",
        str(p12),
        "-passout",
        f"pass:{PASSWORD}",
        "-name",
        "k",
    ]
    convert = ["keytool", "-importkeystore", "-noprompt", "-srckeystore", str(p12), "-srcstoretype", "PKCS12"]
    convert += ["-srcstorepass", PASSWORD, "-destkeystore", str(store), "-deststoretype", kind]
    trusting = ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", trusted, "-keystore", str(trust)]
    for command in (
        openssl,
        [*convert, "-deststorepass", PASSWORD],
        [*trusting, "-storetype", kind, "-storepass", PASSWORD],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return {
        "kafka.ssl.keystore.type": kind,
        "kafka.ssl.keystore.location": str(store),
        "kafka.ssl.keystore.password": PASSWORD,
        "kafka.ssl.key.password": PASSWORD,
        "kafka.ssl.truststore.type": kind,
        "kafka.ssl.truststore.location": str(trust),
        "kafka.ssl.truststore.password": PASSWORD,
    }


def test_passwords_from_a_configuration_provider(broker: EmbeddedKafka, spark: SparkSession, tmp_path: Path) -> None:
    world = Secured(broker, tmp_path)
    cluster = broker.cluster(USER)
    secrets = tmp_path / "secrets"
    secrets.write_text(f"jaas={cluster.properties['sasl.jaas.config']}\n", encoding="utf-8")
    provided = {
        **cluster.properties,
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "sasl.jaas.config": f"${{file:{secrets}:jaas}}",
    }
    options = {f"kafka.{key}": value for key, value in provided.items()}
    query = world.writer(spark, options).start()
    world.send("1", "bad")
    until(lambda: world.written() == ["1"] and world.written(world.letters) == ["bad"], "row and letter are there")
    query.stop()
    file = properties_file(KafkaCluster(cluster.bootstrap_servers, provided), tmp_path / "client.properties")
    assert require_broker(KafkaCluster.from_file(file)) == 1


def test_demo_and_bench_with_client_properties(broker: EmbeddedKafka, tmp_path: Path) -> None:
    config = str(broker.client_config())
    demo = tailrace(
        *("demo", "--mode", "real-time", "--seconds", "10", "--rate", "50", "--json", "--kafka-config", config),
        timeout_s=400,
    )
    assert demo.returncode == 0, demo.stderr
    bench = tailrace(
        *("bench", "--workload", "stateless", "--system", "tailrace", "--system", "loop", "--seconds", "5"),
        *("--warm-up", "2", "--rate", "50", "--output", str(tmp_path), "--json", "--kafka-config", config),
        timeout_s=400,
    )
    assert bench.returncode == 0, bench.stderr
    assert {run["system"] for run in json.loads(bench.stdout)["runs"]} == {"tailrace", "loop"}
    written = "".join(file.read_text(errors="replace") for file in tmp_path.rglob("*") if file.is_file())
    for secret in broker.secrets():
        assert secret not in written + demo.stdout + demo.stderr + bench.stdout + bench.stderr
