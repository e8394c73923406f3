"""`EmbeddedKafka`: a broker that ends with the process that started it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tailrace._broker.admin import create_topics
from tailrace._broker.launch import READY_WITHIN_S, launch, wait_until_ready
from tailrace._broker.properties import Listener, write_properties
from tailrace._process.owner_pipe import end_owned_process
from tailrace._process.paths import log_file
from tailrace._process.ports import HOST, free_port, refuse_taken_port
from tailrace._process.temporary_folders import delete_folder, new_folder
from tailrace._spark import maven
from tailrace.errors import PortTakenError

PORT_ATTEMPTS = 5


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
                self._folder = new_folder("kafka")
                self._configure(self._folder, self.port)
                self._process = launch(self._folder, jars, self.log, owned=True)
                try:
                    wait_until_ready(self._process, self.bootstrap_servers, self.log)
                    return self
                except PortTakenError:
                    # Another program took the port between our check and the broker's start.
                    self.stop()
                    if self._fixed_port or attempt + 1 == PORT_ATTEMPTS:
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
