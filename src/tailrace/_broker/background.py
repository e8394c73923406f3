"""The broker of `tailrace kafka start`: it outlives the command, and later commands find it."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from tailrace._broker import acls
from tailrace._broker.admin import create_topics
from tailrace._broker.embedded import write_secured
from tailrace._broker.launch import launch, wait_until_ready
from tailrace._broker.properties import Listener, write_properties
from tailrace._broker.security import ADMIN, KafkaSecurity, Login, SecurityFiles
from tailrace._kafka.cluster import KafkaCluster, Servers, client_settings
from tailrace._process.console import working
from tailrace._process.paths import log_file, state_folder
from tailrace._process.ports import HOST, free_port, refuse_taken_port
from tailrace._process.process_table import find_process
from tailrace._spark import maven
from tailrace.errors import TailraceError

STOPPED_WITHIN_S = 20
[CLIENT] = KafkaSecurity.users


@dataclasses.dataclass(frozen=True)
class BackgroundBroker:
    pid: int
    port: int
    folder: str
    log: str
    config: str | None = None
    """Of a secured broker: a file with the client properties of its administrator."""
    client_config: str | None = None
    """The same of its user `client`, who may use the topics that the command created."""

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.port}"

    def as_admin(self) -> Servers:
        return KafkaCluster.from_file(self.config) if self.config else self.bootstrap_servers

    def to_dict(self) -> dict[str, Any]:
        return {"bootstrap_servers": self.bootstrap_servers, **dataclasses.asdict(self)}


def start(*, port: int | None = None, secure: bool = False) -> BackgroundBroker:
    """Return the running broker, or start one. Two concurrent commands start only one."""
    with (state_folder("kafka") / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = status()
        if running is None:
            return _start(port, secure)
        if port not in (None, running.port) or secure != (running.config is not None):
            raise _already_running(running)
        return running


def _start(port: int | None, secure: bool) -> BackgroundBroker:
    jars = maven.resolve(maven.KAFKA_BROKER)
    chosen = port or free_port()
    refuse_taken_port(chosen)
    folder = state_folder("kafka") / f"broker-{time.time_ns()}"
    folder.mkdir(mode=0o700)
    controller_port = free_port(other_than=[chosen])
    users = configs = None
    if secure:
        files = SecurityFiles(folder / "security", KafkaSecurity())
        certificate_port = free_port(other_than=[chosen, controller_port])
        users = write_secured(folder, files, chosen, certificate_port, None, controller_port)
        configs = [
            str(files.write_client_config(files.cluster(f"{HOST}:{chosen}", user, Login.SCRAM), user, Login.SCRAM))
            for user in (ADMIN, *files.security.users)
        ]
    else:
        write_properties(folder, [Listener("PLAINTEXT", chosen, chosen)], controller_port)
    log = log_file("kafka")
    with working("Starting Apache Kafka"):
        process = launch(folder, jars, log, owned=False, scram_users=users)
        broker = BackgroundBroker(process.pid, chosen, str(folder), str(log), *(configs or ()))
        try:
            # Recorded before it is ready, so a later command finds it even if this one is killed.
            _state_file().write_text(json.dumps(dataclasses.asdict(broker)), encoding="utf-8")
            wait_until_ready(process, broker.as_admin(), log)
        except BaseException:
            process.kill()
            process.wait()
            _forget(broker)
            raise
    # It keeps running without us, so it is not reaped here.
    process.returncode = 0
    return broker


def status() -> BackgroundBroker | None:
    """Return the running broker, if there is one, and remove what a dead one left behind."""
    try:
        broker = BackgroundBroker(**json.loads(_state_file().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    if _is_running(broker):
        return broker
    _forget(broker)
    return None


def stop() -> None:
    broker = status()
    if broker is None:
        return
    deadline = time.monotonic() + STOPPED_WITHIN_S
    sign = int(signal.SIGTERM)
    while _is_running(broker):
        with contextlib.suppress(ProcessLookupError):
            os.kill(broker.pid, sign)
        # Signal 0 only checks whether it still runs.
        sign = int(signal.SIGKILL) if time.monotonic() > deadline else 0
        time.sleep(0.1)
    _forget(broker)


def parse_topic(text: str) -> tuple[str, int]:
    name, colon, partitions = text.partition(":")
    if not name or (colon and not partitions.isdigit()) or partitions == "0":
        raise TailraceError(
            "TAILRACE_BAD_TOPIC",
            f"'{text}' is not a topic to create.",
            "write NAME or NAME:PARTITIONS, as in payments:4",
        )
    return name, int(partitions or 1)


def ensure_topic(broker: BackgroundBroker, name: str, partitions: int) -> None:
    """Create the topic unless it exists with this number of partitions."""
    topics = AdminClient(client_settings(broker.as_admin())).list_topics(timeout=10).topics
    if name not in topics:
        create_topics(broker.as_admin(), [name], partitions=partitions)
        if broker.config is not None:
            for operation in ("read", "write"):
                acls.grant(broker.as_admin(), CLIENT, operation, "topic", name)
            acls.grant(broker.as_admin(), CLIENT, "write", "transactional-id", "tailrace-*")
    elif len(topics[name].partitions) != partitions:
        raise TailraceError(
            "TAILRACE_TOPIC_NOT_CREATED",
            f"the topic '{name}' exists with {len(topics[name].partitions)} partitions, not {partitions}.",
            "choose another name, or delete the broker and its topics: tailrace kafka stop",
        )


def _already_running(broker: BackgroundBroker) -> TailraceError:
    return TailraceError(
        "TAILRACE_BROKER_ALREADY_RUNNING",
        f"a{' secured' if broker.config else ''} broker already runs at {broker.bootstrap_servers}.",
        "use it, or stop it first: tailrace kafka stop",
    )


def _state_file() -> Path:
    return state_folder("kafka") / "broker.json"


def _forget(broker: BackgroundBroker) -> None:
    shutil.rmtree(broker.folder, ignore_errors=True)
    _state_file().unlink(missing_ok=True)


def _is_running(broker: BackgroundBroker) -> bool:
    """True for a process with the broker's id that was started on the broker's folder: ids are reused."""
    process = find_process(broker.pid)
    return process is not None and broker.folder in process.command
