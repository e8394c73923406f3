"""`EmbeddedKafka`: a broker that ends with the process that started it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tailrace._broker import acls
from tailrace._broker.admin import create_topics
from tailrace._broker.launch import READY_WITHIN_S, launch, wait_until_ready
from tailrace._broker.properties import Listener, write_properties
from tailrace._broker.security import ADMIN, KafkaSecurity, Login, SecurityFiles
from tailrace._kafka.cluster import KafkaCluster, Servers
from tailrace._process.embedded_server import begin_on_port
from tailrace._process.owner_pipe import end_owned_process
from tailrace._process.paths import log_file
from tailrace._process.ports import HOST, free_port
from tailrace._process.temporary_folders import delete_folder, new_folder
from tailrace._spark import maven
from tailrace.errors import ConfigurationError


class EmbeddedKafka:
    """A real Apache Kafka broker in its own process, for tests and experiments.

        with EmbeddedKafka() as kafka:
            kafka.create_topics(["payments"], partitions=2)
            ...  # connect to kafka.bootstrap_servers

    The broker is a single KRaft node on 127.0.0.1. Its data lives in a private temporary folder and is deleted when it
    stops. It stops with the process that started it, even if that process is killed with SIGKILL.

    :param port: a fixed port. By default the operating system picks a free one.
    :param proxy_port: the port of a proxy on this machine. The broker then listens on a second port, `proxied_port`,
        for the proxy to connect to, and gives clients that arrive there the proxy's port as its own.
    :param security: a broker with TLS, users and access control lists; see `client_config`, `grant` and `revoke`.
    """

    def __init__(
        self, *, port: int | None = None, proxy_port: int | None = None, security: KafkaSecurity | None = None
    ) -> None:
        if security is not None and proxy_port is not None:
            raise ConfigurationError(
                "TAILRACE_BAD_ARGUMENT", "a secured embedded broker has no proxy.", "omit proxy_port or security."
            )
        self.port = port
        self.certificate_port: int | None = None
        """Of a secured broker: where clients show a certificate instead of a password."""
        self.expired_port: int | None = None
        """With `expired_listener`: where the broker shows a certificate that has expired."""
        self.proxied_port: int | None = None
        self.log: Path | None = None
        self._fixed_port = port
        self._proxy_port = proxy_port
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._security = security
        self._files: SecurityFiles | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The broker's address, as `kafka.bootstrap.servers` expects it."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The broker's process id; None while it is not running."""
        return self._process.pid if self._process else None

    def __enter__(self) -> EmbeddedKafka:
        return self.start()

    def __exit__(self, *_failure: object) -> None:
        self.stop()

    def start(self) -> EmbeddedKafka:
        """Start the broker. After `kill` or `shut_down` it resumes with its data, at its old address."""
        if self._process is not None:
            return self
        jars = maven.resolve(maven.KAFKA_BROKER)
        if self._folder is not None:
            assert self.log is not None
            self._process = launch(self._folder, jars, self.log, owned=True)
            wait_until_ready(self._process, self._as_admin(), self.log)
            return self

        def begin(port: int) -> None:
            self.port = port
            self.log = log_file("kafka")
            self._folder = new_folder("kafka")
            users = self._configure(self._folder, port)
            self._process = launch(self._folder, jars, self.log, owned=True, scram_users=users)
            wait_until_ready(self._process, self._as_admin(), self.log)

        begin_on_port(self._fixed_port, begin, self.stop)
        return self

    def stop(self) -> None:
        """Stop the broker and delete its data. Safe to call twice."""
        if self._process is not None:
            end_owned_process(self._process, within_s=10)
            self._process = None
        if self._folder is not None:
            delete_folder(self._folder)
            self._folder = None

    def kill(self) -> None:
        """Kill the broker with SIGKILL. Its data stays for the next `start`."""
        self._end_by(signal.SIGKILL)

    def shut_down(self) -> None:
        """Shut the broker down cleanly. Its data stays for the next `start`."""
        self._end_by(signal.SIGTERM)

    def _end_by(self, sign: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(sign)
        try:
            self._process.wait(timeout=READY_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # Only now: a closed pipe tells the broker that its owner is gone, and it deletes its data.
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None

    def _configure(self, folder: Path, port: int) -> Path | None:
        taken = [port]
        for _ in range(3):
            taken.append(free_port(other_than=taken))
        _, controller_port, second_port, third_port = taken
        if self._security is not None:
            self.certificate_port = second_port
            self.expired_port = third_port if self._security.expired_listener else None
            self._files = SecurityFiles(folder / "security", self._security)
            return write_secured(folder, self._files, port, second_port, self.expired_port, controller_port)
        listeners = [Listener("PLAINTEXT", port, port)]
        if self._proxy_port is not None:
            self.proxied_port = second_port
            listeners.append(Listener("PROXIED", second_port, self._proxy_port))
        write_properties(folder, listeners, controller_port)
        return None

    def create_topics(self, names: Iterable[str], *, partitions: int = 1) -> None:
        """Create topics and wait until every partition has a leader. An existing topic is an error."""
        create_topics(self._as_admin(), names, partitions=partitions)

    def cluster(self, user: str = ADMIN, login: Login = Login.SCRAM) -> KafkaCluster:
        """How this user of a secured broker reaches it."""
        port = self.certificate_port if login is Login.CERTIFICATE else self.port
        return self._secured().cluster(f"{HOST}:{port}", user, login)

    def client_config(self, user: str = ADMIN, login: Login = Login.SCRAM) -> Path:
        """A file with the client properties of a user, as `--kafka-config` takes it."""
        return self._secured().write_client_config(self.cluster(user, login), user, login)

    def grant(self, user: str, operation: str, kind: str, name: str) -> None:
        """Let a user of a secured broker do something: `grant("client", "read", "topic", "payments")`.

        :param kind: `topic`, `group`, `transactional-id` or `cluster`.
        :param name: with `*` at its end, everything that begins with it.
        """
        acls.grant(self._as_admin(), user, operation, kind, name)

    def revoke(self, user: str, operation: str, kind: str, name: str) -> None:
        """Take back what was granted with the same words."""
        acls.revoke(self._as_admin(), user, operation, kind, name)

    def secrets(self) -> list[str]:
        """The passwords of a secured broker, for tests that look for them where they must not be."""
        return self._secured().secrets()

    def _secured(self) -> SecurityFiles:
        if self._files is None:
            raise ConfigurationError(
                "TAILRACE_BAD_ARGUMENT",
                "this broker is not secured, or not started.",
                "make it with EmbeddedKafka(security=KafkaSecurity()), and start it.",
            )
        return self._files

    def _as_admin(self) -> Servers:
        return self.bootstrap_servers if self._security is None else self.cluster()


def write_secured(
    folder: Path,
    files: SecurityFiles,
    port: int,
    certificate_port: int,
    expired_port: int | None,
    controller_port: int,
) -> Path:
    """The settings of a secured broker. Returns the file with its users."""
    listeners = [
        Listener("SASL_SSL", port, port, "SASL_SSL"),
        Listener("SSL", certificate_port, certificate_port, "SSL"),
    ]
    with_passwords = ["SASL_SSL"]
    if expired_port is not None:
        listeners.append(Listener("EXPIRED", expired_port, expired_port, "SASL_SSL"))
        with_passwords.append("EXPIRED")
    expired = "EXPIRED" if expired_port is not None else None
    security = files.server_settings(with_passwords, expired)
    # The broker shows its own certificate to itself.
    write_properties(folder, listeners, controller_port, internal="SSL", security=security)
    return files.write_scram_users()
