"""The embedded Redis server is real, private, and ends with its owner."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tailrace import EmbeddedRedis, TailraceError
from tests.helpers.processes import alive
from tests.helpers.waiting import until


def test_commands_run(redis: EmbeddedRedis) -> None:
    assert "redis_version:7." in redis.execute("INFO", "server")
    assert redis.execute("SET", "embedded", "ü") == "OK"
    assert redis.execute("GET", "embedded") == "ü"
    assert redis.execute("DEL", "embedded", "nothing") == 1
    assert redis.execute("MGET", "embedded") == [None]
    with pytest.raises(TailraceError) as failure:
        redis.execute("NOTHING")
    assert failure.value.code == "TAILRACE_STATEMENT_FAILED"


def test_it_listens_on_this_machine_only_and_asks_for_a_password(redis: EmbeddedRedis) -> None:
    assert redis.pid is not None
    listening = psutil.Process(redis.pid).net_connections("tcp")
    assert {one.laddr.ip for one in listening if one.status == psutil.CONN_LISTEN} == {"127.0.0.1"}
    assert redis.execute("ACL", "WHOAMI") == redis.user
    stranger = EmbeddedRedis(port=redis.port)
    stranger.password = "wrong"
    with pytest.raises(TailraceError, match="WRONGPASS"):
        stranger.execute("PING")


def test_the_data_and_the_password_are_private(redis: EmbeddedRedis) -> None:
    password_file = Path(redis.password_file)
    assert password_file.read_text() == redis.password
    for name, mode in (("password", 0o600), ("redis.conf", 0o600), ("data", 0o700), ("", 0o700)):
        assert stat.S_IMODE((password_file.parent / name).stat().st_mode) == mode
    assert str(redis.password) not in (password_file.parent / "redis.conf").read_text()
    commands = [" ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
    assert not any(str(redis.password) in command for command in commands)


def test_one_that_was_killed_or_shut_down_goes_on_with_its_data_at_its_address() -> None:
    with EmbeddedRedis() as server:
        url = server.url
        for end in (server.kill, server.shut_down):
            # A script of several writes is a transaction in the log.
            server.execute("EVAL", "redis.call('INCR', 'kept') redis.call('INCR', 'kept')", 0)
            pid = server.pid
            end()
            assert pid is not None
            assert not alive(pid)
            assert server.start().url == url
        assert server.execute("GET", "kept") == "4"
        folder, pid = Path(server.password_file).parent, server.pid
    assert pid is not None
    assert not alive(pid)
    assert not folder.exists()
    server.stop()  # twice is fine


def test_it_ends_with_its_owner() -> None:
    code = "import time, tailrace; s = tailrace.EmbeddedRedis().start(); print(s.pid, flush=True); time.sleep(600)"
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    assert alive(pid)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    until(lambda: not alive(pid), "the server ends", within_s=30)


def test_what_it_cannot_use_is_refused(redis: EmbeddedRedis) -> None:
    with pytest.raises(TailraceError) as failure:
        EmbeddedRedis(port=redis.port).start()
    assert failure.value.code == "TAILRACE_PORT_TAKEN"
    with pytest.raises(TailraceError) as failure:
        EmbeddedRedis(settings={"no-such-setting": "1"}).start()
    assert failure.value.code == "TAILRACE_REDIS_NOT_STARTED"
