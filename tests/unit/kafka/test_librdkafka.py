"""Java's client properties, translated to librdkafka's."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace._broker.certificates import CertificateAuthority
from tailrace._kafka import jaas
from tailrace._kafka.cluster import KafkaCluster, client_settings, cluster_of
from tailrace._kafka.librdkafka import translate
from tailrace.errors import ConfigurationError

SECRET = "p;w\\=\"'d"
SCRAM = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="app" password="p;w\\\\=\\"\'d" tokenauth=true ;'
)


@settings(deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_any_user_and_password_are_read_from_the_login_module(user: str, password: str) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    module = jaas.parse(f"a.b.Login required username={quoted(user)}  password={quoted(password)};")
    assert module.options == {"username": user, "password": password}
    assert (password or "x") not in repr(module) or len(password) < 8


@settings(deadline=None)
@given(st.text(max_size=120))
def test_no_text_breaks_the_login_module_and_none_is_quoted(text: str) -> None:
    problems = []
    try:
        jaas.parse(text)
    except ConfigurationError as refused:
        problems.append(refused)
    assert all(problem.code == "TAILRACE_BAD_KAFKA_CONFIG" for problem in problems)
    assert not any(len(text) >= 8 and text in str(problem) for problem in problems)


KEYS = st.sampled_from(
    ["security.protocol", "sasl.mechanism", "sasl.jaas.config", "ssl.truststore.location", "ssl.keystore.key"]
)
VALUES = st.sampled_from(["SASL_SSL", "SSL", "PLAIN", "SCRAM-SHA-512", "OAUTHBEARER", SCRAM, "/nowhere", "", "x"])


@settings(deadline=None)
@given(st.dictionaries(KEYS, VALUES))
def test_every_mixture_is_translated_or_refused_with_a_code(properties: dict[str, str]) -> None:
    with contextlib.suppress(ConfigurationError):
        translate(properties)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_passwords(mechanism: str) -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": SCRAM}
    settings = translate(given | {"bootstrap.servers": "b:1", "max.poll.records": "5", "sasl.login.class": "x"})
    assert settings == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": "app",
        "sasl.password": SECRET,
        "ssl.endpoint.identification.algorithm": "https",
    }
    Producer(settings | {"log_level": 0})


def test_tokens_of_an_endpoint_and_tokens_without_a_signature() -> None:
    base = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    settings = translate(
        base
        | {
            "sasl.oauthbearer.token.endpoint.url": "https://id/token",
            "sasl.jaas.config": f'{module} clientId="c" clientSecret="s" scope="k";',
        }
    )
    assert settings["sasl.oauthbearer.method"] == "oidc"
    assert settings["sasl.oauthbearer.client.secret"] == "s"
    Producer(settings | {"log_level": 0})
    unsigned = translate(base | {"sasl.jaas.config": f'{module} unsecuredLoginStringClaim_sub="u";'})
    assert unsigned["sasl.oauthbearer.config"] == "principal=u"


@pytest.mark.parametrize(
    "properties",
    [
        {"security.protocol": "TLS"},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "MAGIC"},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": SCRAM.rstrip("; ")},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
        {"security.protocol": "SSL", "ssl.truststore.location": "/nowhere"},
        {"security.protocol": "SSL", "ssl.made.up": "1"},
    ],
)
def test_what_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        translate(properties)
    assert refused.value.code == "TAILRACE_BAD_KAFKA_CONFIG"
    assert SECRET not in str(refused.value)


def test_certificates_as_pem_and_as_stores(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    pem = authority.write_certificate(tmp_path / "ca.pem")
    store = authority.write_trust_store(tmp_path / "trust.p12", "changeit")
    identity = authority.sign("app")
    key = authority.write_pem(identity, tmp_path / "app.pem")
    key_store = authority.write_key_store(identity, tmp_path / "app.p12", "changeit")
    assert {file.stat().st_mode & 0o777 for file in (pem, store, key, key_store)} == {0o600}
    as_pem = {"security.protocol": "SSL", "ssl.truststore.location": str(pem), "ssl.keystore.location": str(key)}
    settings = translate(as_pem)
    assert settings["ssl.ca.location"] == str(pem)
    assert settings["ssl.key.location"] == settings["ssl.certificate.location"] == str(key)
    Producer(settings | {"log_level": 0})
    as_stores = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(store),
        "ssl.truststore.password": "changeit",
        "ssl.keystore.location": str(key_store),
        "ssl.keystore.password": "changeit",
    }
    settings = translate(as_stores)
    assert "".join(settings["ssl.ca.pem"].split()) == "".join(pem.read_text(encoding="utf-8").split())
    Producer(settings | {"log_level": 0})
    with pytest.raises(ConfigurationError):
        translate(as_stores | {"ssl.truststore.password": "wrong-one"})
    with pytest.raises(KafkaException):
        Producer(translate(as_stores | {"ssl.keystore.password": "wrong-one"}) | {"log_level": 0})


def test_an_old_key_store_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    store = tmp_path / "old.jks"
    subprocess.run(
        [
            *("keytool", "-genkeypair", "-alias", "a", "-dname", "CN=a", "-keyalg", "EC", "-storetype", "JKS"),
            *("-keystore", str(store), "-storepass", "changeit", "-keypass", "changeit"),
        ],
        check=True,
        capture_output=True,
    )
    with pytest.raises(ConfigurationError) as refused:
        translate({"security.protocol": "SSL", "ssl.keystore.location": str(store)})
    assert refused.value.code == "TAILRACE_BAD_KAFKA_CONFIG"
    assert f"keytool -importkeystore -srckeystore {store}" in refused.value.fix


def test_a_cluster_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    text = f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={SCRAM}\nlinger.ms=50\n"
    file.write_text(text.replace("\\", "\\\\"), encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        KafkaCluster.from_file(file)
    assert refused.value.code == "TAILRACE_BAD_KAFKA_CONFIG"
    cluster = cluster_of("broker:9093", file)
    assert isinstance(cluster, KafkaCluster)
    assert str(cluster) == "broker:9093"
    assert SECRET not in repr(cluster)
    assert SECRET not in f"{cluster}"
    assert cluster.spark_options()["kafka.bootstrap.servers"] == "broker:9093"
    assert "kafka.linger.ms" not in cluster.spark_options()
    assert client_settings(cluster, {"group.id": "g"})["sasl.password"] == SECRET
    assert client_settings("broker:9092", {"group.id": "g"}) == {"bootstrap.servers": "broker:9092", "group.id": "g"}
