"""`EmbeddedRedis`: a Redis server that ends with the process that started it."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailrace._process.embedded_server import begin_on_port, end_guarded
from tailrace._process.owner_pipe import guarded
from tailrace._process.paths import log_file, write_private
from tailrace._process.ports import HOST, port_taken
from tailrace._process.temporary_folders import delete_folder, new_folder
from tailrace._redis import client
from tailrace._redis.binaries import installed
from tailrace.errors import TailraceError

USER = "tailrace"
READY_WITHIN_S = 60

# A server for tests keeps what it has acknowledged, so it can be killed and started again.
SETTINGS = {"appendonly": "yes", "appendfsync": "always", "save": '""', "databases": "16"}


class EmbeddedRedis:
    """A real Redis server in its own process, for tests and experiments.

        with EmbeddedRedis() as redis:
            redis.execute("HSET", "user:1", "name", "Ada")
            ...  # give the sink redis.url and redis.password_file

    The server listens on 127.0.0.1 and knows one user, with a password that is made for it. Its data lives in a private
    temporary folder and is deleted when it stops. It stops with the process that started it, even if that process is
    killed with SIGKILL.

    :param port: a fixed port. By default the operating system picks a free one.
    :param settings: lines of redis.conf, by name. By default each write is on disk before it is acknowledged
        (`appendfsync always`).
    """

    user = USER

    def __init__(self, *, port: int | None = None, settings: Mapping[str, str] | None = None) -> None:
        self.port = port
        self.password: str | None = None
        self.log: Path | None = None
        self._settings = dict(settings or {})
        self._fixed_port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None

    @property
    def url(self) -> str:
        """The server's address with the user, as the sink's option `url` expects it."""
        return f"redis://{self.user}@{HOST}:{self.port}/0"

    @property
    def password_file(self) -> str:
        """A file with the password, for the sink's option `passwordFile`."""
        assert self._folder is not None, "the server has not been started"
        return str(self._folder / "password")

    @property
    def pid(self) -> int | None:
        """The server's process id; None while it is not running."""
        with contextlib.suppress(OSError, ValueError):
            return int(self._pid_file.read_text(encoding="utf-8")) if self._process else None
        return None

    def __enter__(self) -> EmbeddedRedis:
        return self.start()

    def __exit__(self, *_failure: object) -> None:
        self.stop()

    def start(self) -> EmbeddedRedis:
        """Start the server. After `kill` or `shut_down` it resumes with its data, at its old address."""
        if self._process is not None:
            return self
        program = installed()
        if self._folder is not None:
            self._launch(program)
            return self

        def begin(port: int) -> None:
            self.port = port
            self.log = log_file("redis")
            self._folder = new_folder("redis")
            self._configure(self._folder)
            self._launch(program)

        begin_on_port(self._fixed_port, begin, self.stop)
        return self

    def stop(self) -> None:
        """Stop the server and delete its data. Safe to call twice."""
        # Its data is deleted anyway, so it need not shut down in order.
        self.kill()
        if self._folder is not None:
            delete_folder(self._folder)
            self._folder = None

    def kill(self) -> None:
        """Kill the server with SIGKILL. Its data stays for the next `start`."""
        self._end_by(signal.SIGKILL)

    def shut_down(self) -> None:
        """Shut the server down in order; clients are disconnected. Its data stays for the next `start`."""
        self._end_by(signal.SIGTERM)

    def execute(self, *command: object) -> Any:
        """Run a command, word by word; returns a text, a number, a list of these, or None."""
        assert self.port is not None, "the server has not been started"
        assert self.password is not None, "the server has not been started"
        try:
            return client.run(self.port, self.user, self.password, command)
        except client.RedisReplyError as error:
            raise client.failed(str(error)) from None

    @property
    def _pid_file(self) -> Path:
        assert self._folder is not None
        return self._folder / "redis.pid"

    def _configure(self, folder: Path) -> None:
        self.password = secrets.token_urlsafe(24)
        write_private(Path(self.password_file), self.password)
        (folder / "data").mkdir(mode=0o700)
        digest = hashlib.sha256(self.password.encode()).hexdigest()
        settings = {**SETTINGS, **self._settings, "bind": HOST, "port": self.port, "dir": folder / "data"}
        settings |= {"pidfile": self._pid_file, "daemonize": "no"}
        lines = [f"{key} {value}" for key, value in settings.items()]
        # The default user cannot log in, but keeps its rights: Redis reads its log of writes as that user.
        lines += ["user default off ~* &* +@all", f"user {self.user} on #{digest} ~* &* +@all"]
        write_private(folder / "redis.conf", "\n".join(lines) + "\n")

    def _launch(self, program: Path) -> None:
        assert self._folder is not None
        assert self.log is not None
        # A server that was killed leaves its file behind.
        self._pid_file.unlink(missing_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                guarded([str(program), str(self._folder / "redis.conf")]),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self._folder,
            )
        self._wait_until_ready(self._process, self.log)

    def _wait_until_ready(self, process: subprocess.Popen[bytes], log: Path) -> None:
        assert self.port is not None
        assert self.password is not None
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                self._process = None
                text = log.read_text(encoding="utf-8", errors="replace")
                if "Address already in use" in text:
                    raise port_taken(self.port)
                last_line = next(reversed(text.splitlines()), "it printed nothing")
                raise _not_started(f"ended with code {process.returncode}: {last_line}", log)
            # It loads its data first, and says so.
            with contextlib.suppress(OSError, client.RedisReplyError):
                client.run(self.port, self.user, self.password, ("PING",))
                return
            time.sleep(0.02)
        raise _not_started(f"did not become ready within {READY_WITHIN_S} s.", log)

    def _end_by(self, sign: signal.Signals) -> None:
        if self._process is None:
            return
        end_guarded(self._process, self.pid, sign, within_s=READY_WITHIN_S)
        self._process = None


def _not_started(what_happened: str, log: Path) -> TailraceError:
    return TailraceError(
        "TAILRACE_REDIS_NOT_STARTED", f"the embedded Redis server {what_happened}", f"read its log: {log}"
    )
