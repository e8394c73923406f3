"""From the properties of Kafka's Java clients to those of librdkafka, as far as they say how to reach a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tailrace._kafka import jaas
from tailrace._kafka.java_properties import bad_config
from tailrace._kafka.stores import is_pem, require_pkcs12, trusted_certificates

Settings = dict[str, str]

# Of the same name and meaning in both.
_SAME = frozenset(
    {
        "bootstrap.servers",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
    }
)
# Of Java's implementation; without them librdkafka does the same in its own way.
_OF_JAVA_ONLY = (
    "sasl.client.callback.handler.class",
    "sasl.login.",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.jwks.",
    "sasl.oauthbearer.header.urlencode",
    "security.providers",
    "sasl.kerberos.ticket.",
    "ssl.engine.factory.class",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.enabled.protocols",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
)
_SECURITY = ("sasl.", "security.", "ssl.")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_STORES = frozenset(
    f"ssl.{store}.{part}"
    for store in ("keystore", "truststore")
    for part in ("location", "password", "type", "certificates", "certificate.chain", "key")
) | {"ssl.key.password"}
_PASSWORD_LOGINS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def translate(properties: Mapping[str, str]) -> Settings:
    """The settings that a client of any kind needs. A setting about security that has no equal is refused."""
    given = {key: value.strip() for key, value in properties.items() if value.strip()}
    settings = {key: value for key, value in given.items() if key in _SAME}
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise bad_config(f"security.protocol is '{protocol}'.", f"choose one of {', '.join(_PROTOCOLS)}.")
    settings["security.protocol"] = protocol
    if protocol.startswith("SASL"):
        settings |= _sasl(given)
    if protocol.endswith("SSL"):
        settings |= _tls(given)
    known = {*_SAME, *_STORES, "security.protocol", "sasl.mechanism", "sasl.jaas.config"} | {
        "ssl.endpoint.identification.algorithm",
        "ssl.cipher.suites",
    }
    for key in sorted(given):
        if key.startswith(_SECURITY) and key not in known and not key.startswith(_OF_JAVA_ONLY):
            raise bad_config(f"the setting {key} is not one that every client knows.", f"remove {key}.")
    return settings


def _sasl(given: Mapping[str, str]) -> Settings:
    mechanism = given.get("sasl.mechanism", "GSSAPI").upper()
    settings = {"sasl.mechanism": mechanism}
    module = jaas.parse(given["sasl.jaas.config"]) if "sasl.jaas.config" in given else None
    options = module.options if module is not None else {}
    if mechanism in _PASSWORD_LOGINS:
        for name in ("username", "password"):
            if name not in options:
                raise bad_config(
                    f"sasl.mechanism is {mechanism}, and sasl.jaas.config has no {name}.",
                    f'add {name}="…" to sasl.jaas.config.',
                )
            settings[f"sasl.{name}"] = options[name]
    elif mechanism == "OAUTHBEARER":
        settings |= _oauth(given, options)
    elif mechanism == "GSSAPI":
        settings |= {
            f"sasl.kerberos.{ours}": options[theirs]
            for theirs, ours in (("keyTab", "keytab"), ("principal", "principal"), ("serviceName", "service.name"))
            if theirs in options
        }
    else:
        raise bad_config(
            f"sasl.mechanism is '{mechanism}'.", f"choose one of {', '.join(_PASSWORD_LOGINS)}, OAUTHBEARER, GSSAPI."
        )
    return settings


def _oauth(given: Mapping[str, str], options: Mapping[str, str]) -> Settings:
    if "sasl.oauthbearer.token.endpoint.url" in given:
        settings = {"sasl.oauthbearer.method": "oidc"}
        names = (("clientId", "client.id"), ("clientSecret", "client.secret"), ("scope", "scope"))
        settings |= {f"sasl.oauthbearer.{ours}": options[theirs] for theirs, ours in names if theirs in options}
        if "sasl.oauthbearer.client.id" not in settings or "sasl.oauthbearer.client.secret" not in settings:
            raise bad_config(
                "sasl.jaas.config has no clientId and clientSecret for the token endpoint.",
                'add clientId="…" clientSecret="…" to sasl.jaas.config.',
            )
        return settings
    # Tokens without a signature: for development, and for brokers that accept them.
    subject = options.get("unsecuredLoginStringClaim_sub")
    if subject is None:
        raise bad_config(
            "sasl.mechanism is OAUTHBEARER, and nothing says where tokens come from.",
            "set sasl.oauthbearer.token.endpoint.url, with clientId and clientSecret in sasl.jaas.config.",
        )
    return {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": f"principal={subject}"}


def _tls(given: Mapping[str, str]) -> Settings:
    settings: Settings = {}
    if given.get("ssl.endpoint.identification.algorithm", "https").lower() == "https":
        settings["ssl.endpoint.identification.algorithm"] = "https"
    else:
        settings["ssl.endpoint.identification.algorithm"] = "none"
    if "ssl.cipher.suites" in given:
        settings["ssl.cipher.suites"] = given["ssl.cipher.suites"].replace(",", ":")
    if "ssl.truststore.certificates" in given:
        settings["ssl.ca.pem"] = given["ssl.truststore.certificates"]
    elif "ssl.truststore.location" in given:
        location = Path(given["ssl.truststore.location"])
        if is_pem(location):
            settings["ssl.ca.location"] = str(location)
        else:
            settings["ssl.ca.pem"] = trusted_certificates(location, given.get("ssl.truststore.password"))
    if "ssl.keystore.key" in given:
        settings["ssl.key.pem"] = given["ssl.keystore.key"]
        settings["ssl.certificate.pem"] = given.get("ssl.keystore.certificate.chain", "")
    elif "ssl.keystore.location" in given:
        settings |= _key_store(Path(given["ssl.keystore.location"]), given)
    if "ssl.key.password" in given and "ssl.keystore.location" not in settings:
        settings["ssl.key.password"] = given["ssl.key.password"]
    return settings


def _key_store(location: Path, given: Mapping[str, str]) -> Settings:
    if is_pem(location):
        # One file has the key and the certificates, and librdkafka finds either in it.
        return {"ssl.key.location": str(location), "ssl.certificate.location": str(location)}
    require_pkcs12(location)
    return {"ssl.keystore.location": str(location), "ssl.keystore.password": given.get("ssl.keystore.password", "")}
