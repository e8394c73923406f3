"""The broker of `tailrace kafka start`: it outlives the command, and a later one finds it again."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from tailrace._process.console import working
from tailrace._process.paths import log_file, state_folder
from tailrace._spark import maven
from tailrace.errors import TailraceError
from tailrace.kafka import (
    HOST,
    Listener,
    create_topics,
    free_port,
    launch,
    refuse_taken_port,
    wait_until_ready,
    write_properties,
)

STOPPED_WITHIN_S = 20


@dataclasses.dataclass(frozen=True)
class BackgroundBroker:
    pid: int
    started: str
    port: int
    folder: str
    log: str

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.port}"

    def to_dict(self) -> dict[str, Any]:
        return {"bootstrap_servers": self.bootstrap_servers, **dataclasses.asdict(self)}


def start(*, port: int | None = None) -> BackgroundBroker:
    """The running broker, or a new one; two commands at once start only one."""
    with (state_folder("kafka") / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = status()
        if running is None:
            return _start(port)
        if port not in (None, running.port):
            raise _already_running(running)
        return running


def _start(port: int | None) -> BackgroundBroker:
    jars = maven.resolve(maven.KAFKA_BROKER)
    chosen = port or free_port()
    refuse_taken_port(chosen)
    folder = state_folder("kafka") / f"broker-{time.time_ns()}"
    folder.mkdir(mode=0o700)
    write_properties(folder, [Listener("PLAINTEXT", chosen, chosen)], free_port(other_than=[chosen]))
    log = log_file("kafka")
    with working("Starting Apache Kafka"):
        process = launch(folder, jars, log, owned=False)
        broker = BackgroundBroker(process.pid, _started(process.pid) or "", chosen, str(folder), str(log))
        try:
            # Noted before it is ready, so that a later command finds it whatever happens to this one.
            _note().write_text(json.dumps(dataclasses.asdict(broker)), encoding="utf-8")
            wait_until_ready(process, f"{HOST}:{chosen}", log)
        except BaseException:
            process.kill()
            process.wait()
            _forget(broker)
            raise
    # It goes on without us: not reaping it here is the point.
    process.returncode = 0
    return broker


def status() -> BackgroundBroker | None:
    """The running broker, if there is one; what a dead one left behind is removed."""
    try:
        broker = BackgroundBroker(**json.loads(_note().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    if _started(broker.pid) == broker.started:
        return broker
    _forget(broker)
    return None


def stop() -> None:
    broker = status()
    if broker is None:
        return
    deadline = time.monotonic() + STOPPED_WITHIN_S
    sign = int(signal.SIGTERM)
    while _started(broker.pid) == broker.started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(broker.pid, sign)
        # Signal 0 only asks whether it is still there.
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
    """Create the topic unless it is there with as many partitions."""
    topics = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10).topics
    if name not in topics:
        create_topics(broker.bootstrap_servers, [name], partitions=partitions)
    elif len(topics[name].partitions) != partitions:
        raise TailraceError(
            "TAILRACE_TOPIC_NOT_CREATED",
            f"the topic '{name}' exists with {len(topics[name].partitions)} partitions, not {partitions}.",
            "choose another name, or start anew: tailrace kafka stop",
        )


def _already_running(broker: BackgroundBroker) -> TailraceError:
    return TailraceError(
        "TAILRACE_BROKER_ALREADY_RUNNING",
        f"a broker already runs at {broker.bootstrap_servers}.",
        "use it, or stop it first: tailrace kafka stop",
    )


def _note() -> Path:
    return state_folder("kafka") / "broker.json"


def _forget(broker: BackgroundBroker) -> None:
    shutil.rmtree(broker.folder, ignore_errors=True)
    _note().unlink(missing_ok=True)


def _started(pid: int) -> str | None:
    """When the process with this number started: a reused number is not mistaken for our broker."""
    try:
        answer = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        fields = answer.rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        return _started_by_ps(pid)


def _started_by_ps(pid: int) -> str | None:
    if Path("/proc/self/stat").exists():
        return None
    # Without /proc, as on macOS.
    answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None
