"""An embedded broker that is the real Apache Kafka: one KRaft node on 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tailrace._process.owned_process import end_owned_process
from tailrace._process.paths import log_file
from tailrace._spark import maven
from tailrace._spark.java import require_java
from tailrace._spark.plugin import plugin_jar, spark_jars
from tailrace.errors import TailraceError

HOST = "127.0.0.1"
READY_WITHIN_S = 60
CLUSTERS_DEFAULT = -1  # as many replicas as the cluster has them by default
PORT_ATTEMPTS = 5

# A throw-away broker should start fast and stay small: no second compiler tier to warm up, and the
# collector without helper threads that would take cores from Spark.
JVM_FLAGS = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


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
    """

    def __init__(self, *, port: int | None = None, proxy_port: int | None = None) -> None:
        self.port = port
        self.proxied_port: int | None = None
        self.log: Path | None = None
        self._fixed_port = port is not None
        self._proxy_port = proxy_port
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None

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
            wait_until_ready(self._process, self.bootstrap_servers, self.log)
            return self
        try:
            for attempt in range(PORT_ATTEMPTS):
                if not self._fixed_port:
                    self.port = free_port()
                assert self.port is not None
                refuse_taken_port(self.port)
                self.log = log_file("kafka")
                self._folder = Path(tempfile.mkdtemp(prefix="tailrace-kafka-"))
                self._configure(self._folder, self.port)
                self._process = launch(self._folder, jars, self.log, owned=True)
                try:
                    wait_until_ready(self._process, self.bootstrap_servers, self.log)
                    return self
                except TailraceError as failure:
                    # Somebody else may have taken a port between our look and the broker's start.
                    self.stop()
                    if failure.code != "TAILRACE_PORT_TAKEN" or self._fixed_port or attempt + 1 == PORT_ATTEMPTS:
                        raise
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the broker and delete its data. Safe to call twice."""
        if self._process is not None:
            end_owned_process(self._process, within_s=10)
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
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
        # Only now: it would take the closed pipe for its owner's end, and delete the data.
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None

    def _configure(self, folder: Path, port: int) -> None:
        taken = [port]
        for _ in range(2):
            taken.append(free_port(other_than=taken))
        _, controller_port, proxied_port = taken
        listeners = [Listener("PLAINTEXT", port, port)]
        if self._proxy_port is not None:
            self.proxied_port = proxied_port
            listeners.append(Listener("PROXIED", proxied_port, self._proxy_port))
        write_properties(folder, listeners, controller_port)

    def create_topics(self, names: Iterable[str], *, partitions: int = 1) -> None:
        """Create topics and wait until every partition has a leader. An existing topic is an error."""
        create_topics(self.bootstrap_servers, names, partitions=partitions)


def create_topics(bootstrap_servers: str, names: Iterable[str], *, partitions: int = 1) -> None:
    """Create topics and wait until every one of them has its leaders; existing topics are an error."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    wanted = list(names)
    for name, future in admin.create_topics([NewTopic(name, partitions, CLUSTERS_DEFAULT) for name in wanted]).items():
        try:
            future.result()
        except KafkaException as failure:
            raise TailraceError(
                "TAILRACE_TOPIC_NOT_CREATED",
                f"the topic '{name}' could not be created on {bootstrap_servers}: {failure.args[0].str()}",
                "choose another name if it exists, or ask for the right to create topics.",
            ) from None
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            topics = admin.list_topics(timeout=10).topics
        except KafkaException:
            continue
        described = [topics[name].partitions.values() for name in wanted if name in topics]
        if len(described) == len(wanted) and all(p.leader >= 0 for parts in described for p in parts):
            return
        time.sleep(0.05)
    raise TailraceError(
        "TAILRACE_TOPIC_NOT_CREATED",
        f"the topics {', '.join(wanted)} have no leaders on {bootstrap_servers} after 30 s.",
        "look at the broker's log.",
    )


def delete_topics(bootstrap_servers: str, names: Iterable[str]) -> list[str]:
    """Delete topics; gives the names of those that are still there."""
    left = []
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0}, logger=SILENT)
    for name, future in admin.delete_topics(list(names), request_timeout=10).items():
        try:
            future.result(timeout=15)
        except (KafkaException, TimeoutError):
            left.append(name)
    return left


def require_broker(bootstrap_servers: str, *, timeout_s: float = 5) -> int:
    """The number of brokers that answer; an error that names the address if none does."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0}, logger=SILENT)
    try:
        return len(admin.list_topics(timeout=timeout_s).brokers)
    except KafkaException:
        raise TailraceError(
            "TAILRACE_BROKER_UNREACHABLE",
            f"no Kafka broker answers at {bootstrap_servers} within {timeout_s:g} s.",
            "check --bootstrap-servers and that the broker runs; without the option an embedded broker is started.",
        ) from None


def free_port(*, other_than: Iterable[int] = ()) -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    return port if port not in other_than else free_port(other_than=other_than)


def refuse_taken_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise _port_taken(port) from None


@dataclass(frozen=True)
class Listener:
    """A port that the broker listens on, and the one that it tells its clients to come to."""

    name: str
    port: int
    advertised_port: int


def write_properties(folder: Path, listeners: list[Listener], controller_port: int) -> None:
    _properties(folder).write_text(_server_properties(folder / "data", listeners, controller_port), encoding="utf-8")


def launch(folder: Path, jars: list[Path], log: Path, *, owned: bool) -> subprocess.Popen[bytes]:
    """Start a broker on `folder`, which has its properties; an owned one ends when this process does."""
    scala_library = spark_jars().glob("scala-library-*.jar")
    class_path = os.pathsep.join(map(str, [plugin_jar(), *jars, *scala_library]))
    has_data = (folder / "data" / "meta.properties").exists()
    cluster_id = "-" if has_data else urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    command = [require_java().command, *JVM_FLAGS]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dorg.slf4j.simpleLogger.showDateTime=true"]
    command += ["-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS"]
    command += ["-cp", class_path, "org.apache.spark.sql.tailrace.internals.kafka.OwnedBroker"]
    command += [str(_properties(folder)), cluster_id, str(folder) if owned else "-"]
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE if owned else subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C in the terminal is for the owner, which then closes the broker in its own order.
            start_new_session=True,
        )


def wait_until_ready(process: subprocess.Popen[bytes], bootstrap_servers: str, log: Path) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0}, logger=SILENT)
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            text = log.read_text(encoding="utf-8", errors="replace")
            if "Address already in use" in text:
                raise _port_taken(int(bootstrap_servers.rpartition(":")[2]))
            last_line = next(reversed(text.splitlines()), "it printed nothing")
            raise _not_started(f"ended with code {process.returncode}: {last_line}", log)
        try:
            if admin.list_topics(timeout=0.5).brokers:
                return
        except KafkaException:
            time.sleep(0.05)
    raise _not_started(f"did not become ready within {READY_WITHIN_S} s.", log)


def _not_started(what_happened: str, log: Path) -> TailraceError:
    problem = f"the embedded Kafka broker {what_happened}"
    return TailraceError("TAILRACE_BROKER_NOT_STARTED", problem, f"read its log: {log}")


def _port_taken(port: int) -> TailraceError:
    return TailraceError(
        "TAILRACE_PORT_TAKEN",
        f"port {port} on {HOST} is in use by another program.",
        "choose another port, or none: then the operating system picks a free one.",
    )


def _properties(folder: Path) -> Path:
    return folder / "server.properties"


def _server_properties(data: Path, listeners: list[Listener], controller_port: int) -> str:
    bound = [f"{listener.name}://{HOST}:{listener.port}" for listener in listeners]
    advertised = [f"{listener.name}://{HOST}:{listener.advertised_port}" for listener in listeners]
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": ",".join([*bound, f"CONTROLLER://{HOST}:{controller_port}"]),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": ",".join(
            f"{name}:PLAINTEXT" for name in [*(listener.name for listener in listeners), "CONTROLLER"]
        ),
        "inter.broker.listener.name": listeners[0].name,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "log.dirs": str(data),
        # One node: every internal topic has one replica, and few partitions so that it starts fast.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        # A mistyped topic name should be an error, not a new topic.
        "auto.create.topics.enable": "false",
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


class _Silent:
    """librdkafka reports each refused connection; while we wait for a broker that is no news."""

    def log(self, *_arguments: object) -> None:
        pass

    debug = info = warning = error = log


SILENT = _Silent()
