"""Why a cluster does not let a client in, in one coded error; the same codes as the plugin's `KafkaRefusals`."""

from __future__ import annotations

import re
import socket
import ssl
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from tailrace._kafka.cluster import KafkaCluster
from tailrace.errors import BrokerError

_EXPIRED = 10  # OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED
_LOOK_FOR_S = 3
_AUTHENTICATION = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
_ACL = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
}


class Reasons:
    """Collects what librdkafka reports beside its answers: those only say that no broker answered in time."""

    def __init__(self) -> None:
        self.errors: list[KafkaError] = []

    def __call__(self, error: KafkaError) -> None:
        self.errors.append(error)

    def refusal(self, servers: object) -> BrokerError | None:
        """The first that tells why; None if the broker just does not answer."""
        return next((found for error in self.errors if (found := refusal_of(error, servers)) is not None), None)


def refusal_of(error: Any, servers: object, resource: str = "", operation: str = "") -> BrokerError | None:
    """What an error of librdkafka says about passwords, certificates and rights; None if it is about something else."""
    if isinstance(error, KafkaException):
        error = error.args[0]
    if not isinstance(error, KafkaError):
        return None
    code, text = error.code(), error.str()
    if code in _AUTHENTICATION:
        return login_refused(servers, text)
    if code == KafkaError._SSL or "SSL handshake failed" in text:
        return _tls_failed(servers, text)
    if code in _ACL:
        return acl_missing(_ACL[code], resource, operation or "Describe")
    return None


def login_refused(servers: object, reason: str) -> BrokerError:
    return BrokerError(
        "TAILRACE_KAFKA_LOGIN_REFUSED",
        f"the broker at {servers} refuses the login: {_reason(reason)}",
        "check user, password and sasl.mechanism, and that the user exists on the cluster.",
    )


def _tls_failed(servers: object, text: str) -> BrokerError:
    if re.search(r"certificate (?:has )?expired|certificate_expired", text, re.IGNORECASE) or _is_expired(servers):
        return BrokerError(
            "TAILRACE_KAFKA_CERTIFICATE_EXPIRED",
            f"a certificate on the way to {servers} has expired: {_reason(text)}",
            "renew the broker's certificate, or with mutual TLS the one in your key store.",
        )
    if re.search(r"verif|unknown ca|self.signed|unable to get", text, re.IGNORECASE):
        return BrokerError(
            "TAILRACE_KAFKA_CERTIFICATE_UNTRUSTED",
            f"the certificate of {servers} is not trusted: {_reason(text)}",
            "set ssl.truststore.location to the certificate of the authority that signed the broker's certificate, "
            "and use a host name that is in it.",
        )
    return BrokerError(
        "TAILRACE_KAFKA_TLS_FAILED",
        f"no TLS connection to {servers}: {_reason(text)}",
        "check security.protocol and the port: does this listener speak TLS, and does it ask for a certificate?",
    )


def _is_expired(servers: object) -> bool:
    """Look at the certificate ourselves: librdkafka does not say what is wrong with it."""
    if not isinstance(servers, KafkaCluster):
        return False
    settings = servers.client_settings()
    host, _, port = servers.bootstrap_servers.split(",")[0].rpartition(":")
    try:
        context = ssl.create_default_context(cafile=settings.get("ssl.ca.location"), cadata=settings.get("ssl.ca.pem"))
        context.check_hostname = False
        with (
            socket.create_connection((host.strip("[]"), int(port)), timeout=_LOOK_FOR_S) as connection,
            context.wrap_socket(connection),
        ):
            return False
    except ssl.SSLCertVerificationError as failure:
        return failure.verify_code == _EXPIRED
    except (OSError, ValueError):
        return False


def acl_missing(kind: str, resource: str, operation: str) -> BrokerError:
    named = f"the {kind} '{resource}'" if resource else f"the {kind}"
    flag = "--cluster" if kind == "cluster" else f"--{kind} {resource or 'NAME'}"
    return BrokerError(
        "TAILRACE_KAFKA_ACL_MISSING",
        f"this user may not {operation.lower()} {named}.",
        f"let an administrator grant it: kafka-acls.sh --bootstrap-server … --command-config admin.properties --add "
        f"--allow-principal User:… --operation {operation} {flag}",
    )


def _reason(text: str) -> str:
    """Without librdkafka's names of threads and sockets, and on one line."""
    short = re.sub(r"^(?:sasl_)?(?:ssl|plaintext|ssl)://\S+: |\s*\(after \d+ms in state \w+.*", "", text.strip())
    return " ".join(short.split())[:300]
