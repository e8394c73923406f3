"""The embedded PostgreSQL server is real, private, and ends with its owner."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tailrace import EmbeddedPostgres, TailraceError
from tests.helpers.processes import alive
from tests.helpers.waiting import until


def test_statements_run(postgres: EmbeddedPostgres) -> None:
    [[version]] = postgres.execute("SHOW server_version")
    assert str(version).startswith("17.")
    assert postgres.execute("SELECT 1, NULL; SELECT 'ü'") == [("1", None), ("ü",)]
    with pytest.raises(TailraceError) as failure:
        postgres.execute("SELECT nothing")
    assert failure.value.code == "TAILRACE_STATEMENT_FAILED"


def test_it_listens_on_this_machine_only_and_not_as_root(postgres: EmbeddedPostgres) -> None:
    assert postgres.pid is not None
    server = psutil.Process(postgres.pid)
    listening = [one.laddr.ip for one in server.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    assert listening == ["127.0.0.1"]
    assert server.uids().real != 0


def test_the_data_and_the_password_are_private(postgres: EmbeddedPostgres) -> None:
    password_file = Path(postgres.password_file)
    assert stat.S_IMODE(password_file.stat().st_mode) == 0o600
    assert password_file.read_text() == postgres.password
    for name in ("data", "socket"):
        assert stat.S_IMODE((password_file.parent / name).stat().st_mode) == 0o700
    commands = [" ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
    assert not any(str(postgres.password) in command for command in commands)


def test_one_that_was_killed_or_shut_down_goes_on_with_its_data_at_its_address() -> None:
    with EmbeddedPostgres() as server:
        url = server.url
        server.execute("CREATE TABLE kept (number int)")
        for number, end in enumerate((server.kill, server.shut_down)):
            server.execute(f"INSERT INTO kept VALUES ({number})")
            pid = server.pid
            end()
            assert pid is not None
            assert not alive(pid)
            assert server.start().url == url
        assert server.execute("SELECT number FROM kept ORDER BY 1") == [("0",), ("1",)]
        folder, pid = Path(server.password_file).parent, server.pid
    assert pid is not None
    assert not alive(pid)
    assert not folder.exists()
    server.stop()  # twice is fine


def test_it_ends_with_its_owner() -> None:
    code = "import time, tailrace; s = tailrace.EmbeddedPostgres().start(); print(s.pid, flush=True); time.sleep(600)"
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    assert alive(pid)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    until(lambda: not alive(pid), "the server ends", within_s=30)


def test_a_taken_port_is_refused(postgres: EmbeddedPostgres) -> None:
    with pytest.raises(TailraceError) as failure:
        EmbeddedPostgres(port=postgres.port).start()
    assert failure.value.code == "TAILRACE_PORT_TAKEN"
