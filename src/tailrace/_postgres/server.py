"""The server's data folder and its process."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from tailrace._process.owner_pipe import guarded
from tailrace._process.paths import write_private
from tailrace._process.ports import HOST, port_taken
from tailrace.errors import TailraceError

USER = "tailrace"
DATABASE = "tailrace"
READY_WITHIN_S = 60
UNPRIVILEGED = "nobody"

# A server for tests keeps what it has acknowledged, as a real one does, so it can be killed and started again.
SETTINGS = {
    "listen_addresses": f"'{HOST}'",
    "max_connections": "100",
    "shared_buffers": "'64MB'",
    "password_encryption": "'scram-sha-256'",
    "logging_collector": "off",
    "log_line_prefix": "'%m [%p] '",
}
# The socket is in a folder that only its owner can enter. Others on this machine need the password.
AUTHENTICATION = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


class PredecessorAliveError(Exception):
    """The processes of a server that was killed have not ended yet."""


class ServerFolder:
    """Programs, data and socket of one server, in a folder that is deleted with it.

    PostgreSQL refuses to run as root. Root lends the server's data to an unprivileged user and runs it as that user,
    with programs of its own: those in root's cache are closed to others.
    """

    def __init__(self, folder: Path, installed: Path) -> None:
        self.data = folder / "data"
        self.socket_folder = folder / "socket"
        self.password_file = folder / "password"
        self.owner = pwd.getpwnam(UNPRIVILEGED) if os.geteuid() == 0 else None
        self._programs = installed
        self._killed: int | None = None
        if self.owner is not None:
            self._programs = folder / "postgresql"
            shutil.copytree(installed, self._programs, symlinks=True, copy_function=_link_or_copy)
            folder.chmod(0o711)
        for private in (self.data, self.socket_folder):
            private.mkdir(mode=0o700, exist_ok=True)
            if self.owner is not None:
                os.chown(private, self.owner.pw_uid, self.owner.pw_gid)

    def create(self, port: int, log: Path) -> str:
        """Make an empty database; returns the password of its user."""
        password = secrets.token_urlsafe(24)
        write_private(self.password_file, password)
        if self.owner is not None:
            os.chown(self.password_file, self.owner.pw_uid, self.owner.pw_gid)
        options = ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync", f"--username={USER}"]
        with log.open("ab") as output:
            made = subprocess.run(
                [self.program("initdb"), *options, f"--pwfile={self.password_file}", "-D", str(self.data)],
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                env=_environment(),
                cwd=self.data,
                **self.as_owner(),
            )
        if made.returncode != 0:
            raise not_started(f"could not make its data folder (code {made.returncode})", log)
        settings = {**SETTINGS, "port": str(port), "unix_socket_directories": f"'{self.socket_folder}'"}
        with (self.data / "postgresql.auto.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{key} = {value}\n" for key, value in settings.items())
        (self.data / "pg_hba.conf").write_text(AUTHENTICATION, encoding="utf-8")
        return password

    def launch(self, log: Path) -> subprocess.Popen[bytes]:
        """Start the server. It ends with this process, whatever ends it."""
        # A server that was killed leaves its file behind.
        self._killed = (self._read_state() or (None,))[0]
        command = guarded([self.program("postgres"), "-D", str(self.data)], user=self.owner and self.owner.pw_uid)
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=_environment(),
                cwd=self.data,
            )

    def socket_file(self, port: int) -> Path:
        return self.socket_folder / f".s.PGSQL.{port}"

    def state(self) -> tuple[int, str] | None:
        """The server's process id and its status; None if it is not running."""
        state = self._read_state()
        return state if state is not None and state[0] != self._killed else None

    def _read_state(self) -> tuple[int, str] | None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
            return int(lines[0]), lines[7].strip()
        return None

    def program(self, name: str) -> str:
        return str(self._programs / "bin" / name)

    def as_owner(self) -> dict[str, Any]:
        if self.owner is None:
            return {}
        return {"user": self.owner.pw_uid, "group": self.owner.pw_gid, "extra_groups": []}


def wait_until_ready(server: ServerFolder, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            text = log.read_text(encoding="utf-8", errors="replace")
            if "pre-existing shared memory block" in text.splitlines()[-2:][0]:
                raise PredecessorAliveError
            if "Address already in use" in text:
                raise port_taken(port)
            last_line = next(reversed(text.splitlines()), "it printed nothing")
            raise not_started(f"ended with code {process.returncode}: {last_line}", log)
        if (state := server.state()) is not None and state[1] == "ready":
            return
        time.sleep(0.02)
    raise not_started(f"did not become ready within {READY_WITHIN_S} s.", log)


def not_started(what_happened: str, log: Path) -> TailraceError:
    return TailraceError(
        "TAILRACE_POSTGRES_NOT_STARTED", f"the embedded PostgreSQL server {what_happened}", f"read its log: {log}"
    )


def _environment() -> dict[str, str]:
    # Messages are read above. PGDATA and the like belong to a server of the user's.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    return {**kept, "LC_ALL": "C"}


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target)
