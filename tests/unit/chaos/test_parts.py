"""The parts of faults: a network that can be cut, a folder that cannot be written, processes by kind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace._process.process_table import Process, members_of_session
from tailrace.chaos._processes import executors, python_workers
from tailrace.chaos._read_only import read_only, why_not_read_only
from tailrace.chaos.proxy import TcpProxy
from tests.helpers.waiting import until


@pytest.fixture
def echo_port() -> Iterator[int]:
    """A server that answers each message with itself."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection:
                while data := connection.recv(1024):
                    connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


@pytest.fixture
def proxy(echo_port: int) -> Iterator[TcpProxy]:
    with TcpProxy() as started:
        started.target_port = echo_port
        yield started


def connect(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=60)


def echoes(connection: socket.socket, word: bytes) -> bool:
    try:
        connection.sendall(word)
        return connection.recv(1024) == word
    except OSError:
        return False


def test_bytes_go_through(proxy: TcpProxy) -> None:
    with connect(proxy) as one, connect(proxy) as other:
        assert echoes(one, b"one")
        assert echoes(other, b"other")


def test_a_cut_breaks_connections_and_refuses_new_ones(proxy: TcpProxy) -> None:
    with connect(proxy) as before:
        assert echoes(before, b"before")
        proxy.cut()
        assert not echoes(before, b"after")
        with connect(proxy) as during:
            assert not echoes(during, b"during")
    proxy.restore()
    with connect(proxy) as after:
        assert echoes(after, b"after")


def test_silence_keeps_connections_and_what_was_sent(proxy: TcpProxy) -> None:
    with connect(proxy) as connection:
        assert echoes(connection, b"before")
        proxy.fall_silent()
        connection.sendall(b"held")
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1024)
        proxy.restore()
        connection.settimeout(5)
        assert connection.recv(1024) == b"held"


def test_a_target_that_is_away_is_found_again(proxy: TcpProxy, echo_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        proxy.target_port = gone.getsockname()[1]
    with connect(proxy) as connection:
        assert not echoes(connection, b"nobody there")
    proxy.target_port = echo_port
    with connect(proxy) as connection:
        assert echoes(connection, b"here")


def test_nothing_can_be_created_in_a_read_only_folder(tmp_path: Path) -> None:
    reason = why_not_read_only()
    if reason is not None:
        pytest.skip(reason)
    below = tmp_path / "offsets"
    below.mkdir()
    with read_only(tmp_path):
        for folder in (tmp_path, below):
            with pytest.raises(OSError, match=r"not permitted|denied"):
                (folder / "0").touch()
    (below / "0").touch()


def test_all_of_a_session_are_found_also_those_that_left_their_group() -> None:
    code = "import os, time\nif os.fork() == 0: os.setpgid(0, 0)\ntime.sleep(60)"
    leader = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    members = until(lambda: found if len(found := members_of_session(leader.pid)) == 2 else None, "both processes")
    assert {process.pid for process in members} > {leader.pid}
    assert os.getpid() not in {process.pid for process in members}
    for process in members:
        process.signal(signal.SIGKILL)
    leader.wait()
    until(lambda: not members_of_session(leader.pid), "none is left")


def test_kinds_of_processes() -> None:
    daemon = Process(2, 1, "python -m tailrace_worker.daemon")
    worker = Process(3, 2, "python -m tailrace_worker.daemon")
    executor = Process(4, 1, "/usr/bin/java -cp x org.apache.spark.executor.CoarseGrainedExecutorBackend --cores 4")
    everybody = [Process(1, 0, "/usr/bin/java -cp x SparkSubmit"), daemon, worker, executor]
    assert python_workers(everybody) == [worker]
    assert executors(everybody) == [executor]
