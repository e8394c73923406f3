"""`EmbeddedPostgres`: a PostgreSQL server that ends with the process that started it."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from tailrace._postgres import client
from tailrace._postgres.binaries import installed
from tailrace._postgres.server import (
    DATABASE,
    READY_WITHIN_S,
    USER,
    PredecessorAliveError,
    ServerFolder,
    not_started,
    wait_until_ready,
)
from tailrace._process.embedded_server import begin_on_port, end_guarded
from tailrace._process.paths import log_file
from tailrace._process.ports import HOST
from tailrace._process.temporary_folders import delete_folder, new_folder

LAUNCH_ATTEMPTS = 100


class EmbeddedPostgres:
    """A real PostgreSQL server in its own process, for tests and experiments.

        with EmbeddedPostgres() as postgres:
            postgres.execute("CREATE TABLE decisions (id bigint PRIMARY KEY, approved boolean)")
            ...  # give the sink postgres.url, postgres.user and postgres.password_file

    The server listens on 127.0.0.1 and asks for a password that is made for it. Its data lives in a private temporary
    folder and is deleted when it stops. It stops with the process that started it, even if that process is killed with
    SIGKILL. PostgreSQL does not run as root; started by root, it runs as the user `nobody`.

    :param port: a fixed port. By default the operating system picks a free one.
    """

    user = USER
    database = DATABASE

    def __init__(self, *, port: int | None = None) -> None:
        self.port = port
        self.password: str | None = None
        self.log: Path | None = None
        self._fixed_port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._server: ServerFolder | None = None

    @property
    def url(self) -> str:
        """The database's address, as the sink's option `url` expects it."""
        return f"jdbc:postgresql://{HOST}:{self.port}/{self.database}"

    @property
    def password_file(self) -> str:
        """A file with the password, for the sink's option `passwordFile`."""
        assert self._server is not None, "the server has not been started"
        return str(self._server.password_file)

    @property
    def socket_file(self) -> str:
        """The server's socket in a private folder, over which it asks for no password."""
        assert self._server is not None, "the server has not been started"
        assert self.port is not None
        return str(self._server.socket_file(self.port))

    @property
    def pid(self) -> int | None:
        """The server's process id; None while it is not running."""
        state = self._server.state() if self._server and self._process else None
        return state[0] if state else None

    def __enter__(self) -> EmbeddedPostgres:
        return self.start()

    def __exit__(self, *_failure: object) -> None:
        self.stop()

    def start(self) -> EmbeddedPostgres:
        """Start the server. After `kill` or `shut_down` it resumes with its data, at its old address."""
        if self._process is not None:
            return self
        if self._server is not None:
            self._launch(self._server)
            return self
        programs = installed()

        def begin(port: int) -> None:
            self.port = port
            self.log = log_file("postgresql")
            self._folder = new_folder("postgresql")
            self._server = ServerFolder(self._folder, programs)
            self.password = self._server.create(port, self.log)
            self._launch(self._server)
            self._run("postgres", f"CREATE DATABASE {self.database}")

        begin_on_port(self._fixed_port, begin, self.stop)
        return self

    def stop(self) -> None:
        """Stop the server and delete its data. Safe to call twice."""
        # Its data is deleted anyway, so it need not shut down in order.
        self.kill()
        if self._folder is not None:
            delete_folder(self._folder)
            self._folder = self._server = None

    def kill(self) -> None:
        """Kill the server with SIGKILL. Its data stays for the next `start`."""
        self._end_by(signal.SIGKILL)

    def shut_down(self) -> None:
        """Shut the server down in order; clients are disconnected. Its data stays for the next `start`."""
        self._end_by(signal.SIGINT)

    def execute(self, sql: str) -> list[tuple[str | None, ...]]:
        """Run statements separated by semicolons, as one transaction; returns rows, with every value as a text."""
        return self._run(self.database, sql)

    def _run(self, database: str, sql: str) -> list[tuple[str | None, ...]]:
        assert self._server is not None, "the server has not been started"
        assert self.port is not None
        return client.run(self._server.socket_file(self.port), self.user, database, sql)

    def _launch(self, server: ServerFolder) -> None:
        assert self.port is not None
        assert self.log is not None
        for _ in range(LAUNCH_ATTEMPTS):
            self._process = server.launch(self.log)
            try:
                wait_until_ready(server, self._process, self.port, self.log)
                return
            except PredecessorAliveError:
                time.sleep(0.1)
        raise not_started("cannot start: processes of its predecessor do not end.", self.log)

    def _end_by(self, sign: signal.Signals) -> None:
        if self._process is not None and self._server is not None:
            end_guarded(self._process, self.pid, sign, within_s=READY_WITHIN_S)
            self._process = None
