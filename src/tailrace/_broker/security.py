"""The secured embedded broker: TLS, users with passwords and certificates, and access control lists."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tailrace._broker.certificates import CertificateAuthority
from tailrace._kafka.cluster import KafkaCluster
from tailrace._process.paths import write_private
from tailrace.errors import ConfigurationError

ADMIN = "admin"
BROKER = "broker"
_LOGIN_MODULE = "org.apache.kafka.common.security"


class Login(StrEnum):
    """How a client proves who it is."""

    SCRAM = "SCRAM-SHA-512"
    PLAIN = "PLAIN"
    OAUTH = "OAUTHBEARER"
    """With tokens that carry no signature: for tests only."""
    CERTIFICATE = "SSL"
    """Mutual TLS, on a port of its own."""


@dataclass(frozen=True)
class KafkaSecurity:
    """What a secured embedded broker has.

    :param users: they exist, and may do nothing until they are granted rights. `admin` exists anyway, and may do all.
    :param expired_listener: also listen on a port whose certificate has expired.
    """

    users: tuple[str, ...] = ("client",)
    expired_listener: bool = False

    def __post_init__(self) -> None:
        for user in self.users:
            if not user.replace("-", "").replace("_", "").isalnum() or user in (ADMIN, BROKER):
                raise ConfigurationError(
                    "TAILRACE_BAD_ARGUMENT",
                    f"'{user}' cannot be a user of the embedded broker.",
                    f"use letters, digits, - and _, and neither {ADMIN} nor {BROKER}.",
                )


class SecurityFiles:
    """Certificates, passwords and client properties, in a folder that only this user can read."""

    def __init__(self, folder: Path, security: KafkaSecurity) -> None:
        self.folder = folder
        self.security = security
        self._passwords = {user: secrets.token_urlsafe(24) for user in (ADMIN, *security.users)}
        self._authority = CertificateAuthority()
        folder.mkdir(mode=0o700)
        self._trusted = self._authority.write_certificate(folder / "ca.pem")
        self._authority.write_pem(self._authority.sign(BROKER), folder / "broker.pem")
        if security.expired_listener:
            self._authority.write_pem(self._authority.sign(BROKER, expired=True), folder / "expired.pem")
        for user in self._passwords:
            self._authority.write_pem(self._authority.sign(user), folder / f"{user}.pem")

    def secrets(self) -> list[str]:
        """Every password, for tests that look for them."""
        return list(self._passwords.values())

    def write_scram_users(self) -> Path:
        """For the broker, which adds them to its storage before it starts."""
        file = self.folder / "scram-users"
        write_private(
            file,
            "".join(f"{Login.SCRAM}=[name={user},password={word}]\n" for user, word in self._passwords.items()),
        )
        return file

    def server_settings(self, names: Iterable[str], expired: str | None) -> dict[str, str]:
        """Of the broker, for these listeners; those with SASL are among them, and `expired` is one of them."""
        plain = " ".join(f'user_{user}="{word}"' for user, word in self._passwords.items())
        logins = {
            "scram-sha-512": f"{_LOGIN_MODULE}.scram.ScramLoginModule required;",
            "plain": f"{_LOGIN_MODULE}.plain.PlainLoginModule required {plain};",
            "oauthbearer": f"{_LOGIN_MODULE}.oauthbearer.OAuthBearerLoginModule required "
            f'unsecuredLoginStringClaim_sub="{BROKER}";',
        }
        settings = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN};User:{BROKER}",
            "allow.everyone.if.no.acl.found": "false",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._trusted),
            "ssl.client.auth": "required",
        }
        for name in names:
            prefix = f"listener.name.{name.lower()}"
            settings[f"{prefix}.ssl.client.auth"] = "none"
            settings[f"{prefix}.sasl.enabled.mechanisms"] = ",".join((Login.SCRAM, Login.PLAIN, Login.OAUTH))
            for mechanism, login in logins.items():
                settings[f"{prefix}.{mechanism}.sasl.jaas.config"] = login
        if expired is not None:
            settings[f"listener.name.{expired.lower()}.ssl.keystore.location"] = str(self.folder / "expired.pem")
        return settings

    def cluster(self, servers: str, user: str, login: Login) -> KafkaCluster:
        """How a user reaches the broker."""
        if user not in self._passwords:
            known = ", ".join(self._passwords)
            raise ConfigurationError("TAILRACE_BAD_ARGUMENT", f"the broker has no user '{user}'.", f"it has {known}.")
        properties = {
            "bootstrap.servers": servers,
            "security.protocol": "SSL" if login is Login.CERTIFICATE else "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._trusted),
        }
        if login is Login.CERTIFICATE:
            properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.folder / f"{user}.pem")}
        else:
            properties |= {"sasl.mechanism": login.value, "sasl.jaas.config": self._jaas(user, login)}
        return KafkaCluster(servers, properties)

    def _jaas(self, user: str, login: Login) -> str:
        if login is Login.OAUTH:
            module = f"{_LOGIN_MODULE}.oauthbearer.OAuthBearerLoginModule"
            return f'{module} required unsecuredLoginStringClaim_sub="{user}";'
        module = "scram.ScramLoginModule" if login is Login.SCRAM else "plain.PlainLoginModule"
        return f'{_LOGIN_MODULE}.{module} required username="{user}" password="{self._passwords[user]}";'

    def write_client_config(self, cluster: KafkaCluster, user: str, login: Login) -> Path:
        """A file of client properties for that user."""
        file = self.folder / (
            f"{user}.properties" if login is Login.SCRAM else f"{user}-{login.name.lower()}.properties"
        )
        write_private(file, "".join(f"{key}={value}\n" for key, value in cluster.to_dict().items()))
        return file
