"""A broker with TLS, users and access control lists: what works with it, and what is refused, before the start."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tailrace
from tailrace._broker.certificates import CertificateAuthority
from tailrace.errors import QueryRefusedError, TailraceError
from tailrace.kafka import EmbeddedKafka, KafkaCluster, KafkaSecurity, Login, create_topics, require_broker
from tailrace.loadtest import LoadTest
from tests.helpers.processes import command_line
from tests.helpers.processes import tailrace as run_cli
from tests.helpers.secured import USER, Secured, properties_file, with_wrong_password
from tests.helpers.waiting import comparing_times, until

# What the check may take to refuse a configuration.
REFUSED_WITHIN_S = 15


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(security=KafkaSecurity(users=(USER,), expired_listener=True)) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def shared(broker: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Secured:
    """For tests that write nothing, and leave the rights as they are."""
    return Secured(broker, tmp_path_factory.mktemp("secured"))


@pytest.fixture
def other_authority(tmp_path: Path) -> str:
    return str(CertificateAuthority().write_certificate(tmp_path / "other.pem"))


def code_of(refused: Callable[[], object]) -> TailraceError:
    begun = time.monotonic()
    with pytest.raises(TailraceError) as found:
        refused()
    with comparing_times():
        assert time.monotonic() - begun < REFUSED_WITHIN_S
    assert "\tat " not in str(found.value)
    return found.value


def test_a_query_runs_and_restarts_exactly_once(broker: EmbeddedKafka, spark: SparkSession, tmp_path: Path) -> None:
    world = Secured(broker, tmp_path)
    query = world.writer(spark).start()
    world.send("1", "2", "bad", "3")
    until(lambda: world.written() == ["1", "2", "3"], "the rows are there")
    until(lambda: world.written(world.letters) == ["bad"], "the dead letter is there")
    until(lambda: tailrace.latency(query).figures.lag_rows is not None, "the lag is known")
    query.stop()
    # The epoch is open: the rows are read again, and recognized in the output.
    query = world.writer(spark).start()
    world.send("4")
    until(lambda: "4" in world.written(), "the new row is there")
    assert world.written() == ["1", "2", "3", "4"]
    assert query.exception() is None
    query.stop()


def test_a_wrong_password_for_the_source_or_the_sink(shared: Secured, spark: SparkSession) -> None:
    wrong = with_wrong_password(shared.kafka.cluster(USER)).spark_options()
    right = shared.options()
    for writer in (shared.writer(spark, wrong), shared.writer(spark, right, sink_options=wrong)):
        refused = code_of(writer.start)
        assert refused.code == "TAILRACE_KAFKA_LOGIN_REFUSED"
        assert isinstance(refused, QueryRefusedError)


def test_an_untrusted_and_an_expired_certificate(shared: Secured, spark: SparkSession, other_authority: str) -> None:
    untrusted = shared.options() | {"kafka.ssl.truststore.location": other_authority}
    assert code_of(shared.writer(spark, untrusted).start).code == "TAILRACE_KAFKA_CERTIFICATE_UNTRUSTED"
    expired = shared.options() | {"kafka.bootstrap.servers": f"127.0.0.1:{shared.kafka.expired_port}"}
    assert code_of(shared.writer(spark, expired).start).code == "TAILRACE_KAFKA_CERTIFICATE_EXPIRED"


@pytest.mark.parametrize("number", range(5))
def test_a_missing_right_is_named_with_the_command_that_grants_it(
    shared: Secured, spark: SparkSession, number: int
) -> None:
    operation, kind, name = right = shared.rights[number]
    shared.kafka.revoke(USER, *right)
    try:
        refused = code_of(shared.writer(spark).start)
    finally:
        shared.kafka.grant(USER, *right)
    assert refused.code == "TAILRACE_KAFKA_ACL_MISSING"
    granted = f"--allow-principal User:{USER} --operation {operation.capitalize()} --{kind} {name.rstrip('*')}"
    assert granted in refused.fix


def test_spark_s_own_sink_needs_no_right_to_read_and_no_transaction(shared: Secured, spark: SparkSession) -> None:
    unneeded = [shared.rights[1], shared.rights[4]]
    for right in unneeded:
        shared.kafka.revoke(USER, *right)
    try:
        assert not tailrace.check(shared.writer(spark, sink="kafka")).blocked
    finally:
        for right in unneeded:
            shared.kafka.grant(USER, *right)


def test_the_check_hides_secrets(shared: Secured, spark: SparkSession) -> None:
    verdict = tailrace.check(shared.writer(spark))
    assert not verdict.blocked
    described = spark._jvm.org.apache.spark.sql.tailrace.preflight.Preflight.ofWriter(  # type: ignore[union-attr]
        shared.writer(spark)._jwrite, 300_000, 0
    )
    assert "kafka.sasl.jaas.config" in described
    for secret in shared.kafka.secrets():
        assert secret not in described + verdict.to_json() + str(verdict)


def test_a_plan_hides_passwords_and_keys(shared: Secured, spark: SparkSession) -> None:
    key = "-----BEGIN PRIVATE KEY----- bm90IGEga2V5 -----END PRIVATE KEY-----"
    rows = shared.rows(spark, shared.options() | {"kafka.ssl.keystore.key": key})
    plan = rows._jdf.queryExecution().toString()
    assert "kafka.ssl.keystore.key" in plan
    assert "kafka.sasl.jaas.config" in plan
    assert not [secret for secret in (*shared.kafka.secrets(), "bm90IGEga2V5") if secret in plan]


@pytest.mark.parametrize("login", list(Login))
def test_every_login_reaches_the_broker(shared: Secured, spark: SparkSession, login: Login) -> None:
    assert require_broker(shared.kafka.cluster(USER, login)) == 1
    assert not tailrace.check(shared.writer(spark, shared.options(login))).blocked


def test_clients_of_our_own_are_refused_with_the_same_codes(shared: Secured, other_authority: str) -> None:
    cluster = shared.kafka.cluster(USER)
    untrusted = replace(cluster, properties={**cluster.properties, "ssl.truststore.location": other_authority})
    expired = KafkaCluster(f"127.0.0.1:{shared.kafka.expired_port}", cluster.properties)
    codes = {
        "TAILRACE_KAFKA_LOGIN_REFUSED": lambda: require_broker(with_wrong_password(cluster)),
        "TAILRACE_KAFKA_CERTIFICATE_UNTRUSTED": lambda: require_broker(untrusted),
        "TAILRACE_KAFKA_CERTIFICATE_EXPIRED": lambda: require_broker(expired),
        "TAILRACE_KAFKA_ACL_MISSING": lambda: create_topics(cluster, ["not-allowed"]),
        "TAILRACE_BROKER_UNREACHABLE": lambda: require_broker(cluster.bootstrap_servers),
    }
    assert {code: code_of(refused).code for code, refused in codes.items()} == {code: code for code in codes}


def test_a_load_test_of_a_secured_topic(shared: Secured, broker: EmbeddedKafka) -> None:
    broker.create_topics(["echo"])
    for operation in ("read", "write"):
        broker.grant(USER, operation, "topic", "echo")
    cluster = broker.cluster(USER)
    with LoadTest(bootstrap_servers=cluster, input_topic="echo", output_topic="echo", rate=100) as load:
        load.wait_for_output(timeout_s=120)
        report = load.measure(seconds=1)
    assert report.lost == 0
    assert report.received > 0


def test_commands_with_a_file_of_client_properties(shared: Secured, tmp_path: Path) -> None:
    config = str(shared.kafka.client_config(USER))
    sized = run_cli("size", "--topic", shared.input, "--kafka-config", config, "--json")
    assert json.loads(sized.stdout)["slots"] == 2
    wrong = properties_file(with_wrong_password(shared.kafka.cluster(USER)), tmp_path / "wrong.properties")
    refused = run_cli("size", "--topic", shared.input, "--kafka-config", str(wrong))
    assert refused.returncode == 1
    assert "TAILRACE_KAFKA_LOGIN_REFUSED" in refused.stderr
    assert "Traceback" not in refused.stderr
    missing = run_cli("size", "--topic", shared.input, "--kafka-config", str(tmp_path / "missing"))
    assert "TAILRACE_BAD_KAFKA_CONFIG" in missing.stderr


def test_a_secured_broker_in_the_background() -> None:
    started = run_cli("kafka", "start", "--secure", "--topic", "payments:3", "--json")
    try:
        told = json.loads(started.stdout)
        config = Path(told["client_config"])
        assert config.stat().st_mode & 0o777 == 0o600
        assert config.parent.stat().st_mode & 0o777 == 0o700
        word = KafkaCluster.from_file(config).client_settings()["sasl.password"]
        sized = run_cli("size", "--topic", "payments", "--kafka-config", str(config), "--json")
        assert json.loads(sized.stdout)["slots"] == 3
        assert word not in started.stdout + started.stderr + command_line(told["pid"])
        again = run_cli("kafka", "start")
        assert "TAILRACE_BROKER_ALREADY_RUNNING" in again.stderr
        assert str(config) in run_cli("kafka", "status").stderr
    finally:
        run_cli("kafka", "stop")
    assert not config.parent.exists()
