"""The embedded broker is real, private, and ends with its owner."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from tailrace import EmbeddedKafka, TailraceError
from tailrace.chaos.proxy import TcpProxy
from tailrace.kafka import create_topics, require_broker
from tests.helpers.processes import alive
from tests.helpers.processes import tailrace as tailrace_cli
from tests.helpers.topics import Collector, new_topic, produce
from tests.helpers.waiting import stretched, until


def test_records_go_in_and_come_out(kafka: EmbeddedKafka) -> None:
    topic = new_topic(kafka.bootstrap_servers, "round-trip")
    with Collector(kafka.bootstrap_servers, topic) as out:
        produce(kafka.bootstrap_servers, topic, ({"id": i} for i in range(10)))
        until(lambda: len(out.rows()) == 10, "the rows")


def test_topics_are_created_on_request_only(kafka: EmbeddedKafka) -> None:
    topic = new_topic(kafka.bootstrap_servers, "partitions", partitions=3)
    described = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(timeout=60).topics
    assert len(described[topic].partitions) == 3
    with pytest.raises(TailraceError) as failure:
        create_topics(kafka.bootstrap_servers, [topic])
    assert failure.value.code == "TAILRACE_TOPIC_NOT_CREATED"


def test_it_is_reached_from_this_machine_only_and_leaves_nothing() -> None:
    with EmbeddedKafka() as broker:
        assert broker.pid is not None
        connections = psutil.Process(broker.pid).net_connections("tcp")
        listening = [one.laddr.ip for one in connections if one.status == psutil.CONN_LISTEN]
        assert len(listening) == 2  # clients and the controller
        # As IPv4, or mapped into IPv6 as Java does it.
        assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
        assert broker._folder is not None
        folder, pid, log = broker._folder, broker.pid, broker.log
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert log is not None
        assert "Kafka Server started" in log.read_text()
    assert not alive(pid)
    assert not folder.exists()
    broker.stop()  # twice is fine


def test_one_that_was_killed_or_shut_down_goes_on_with_its_data_at_its_address() -> None:
    with EmbeddedKafka() as broker:
        address, folder = broker.bootstrap_servers, broker._folder
        topic = new_topic(address, "kept")
        sent = 0
        for end in (broker.kill, broker.shut_down):
            produce(address, topic, ({"id": i} for i in range(sent, sent + 10)))
            sent += 10
            pid = broker.pid
            end()
            assert pid is not None
            assert not alive(pid)
            assert broker.start().bootstrap_servers == address
        with Collector(address, topic) as out:
            until(lambda: len(out.rows()) == sent, "all records")
    assert folder is not None
    assert not folder.exists()
    broker.kill()  # of one that is gone: nothing happens


def test_clients_that_come_through_a_proxy_stay_there() -> None:
    with TcpProxy() as proxy, EmbeddedKafka(proxy_port=proxy.port) as broker:
        proxy.target_port = broker.proxied_port
        address = f"127.0.0.1:{proxy.port}"
        topic = new_topic(address, "proxied")
        described = AdminClient({"bootstrap.servers": address}).list_topics(timeout=60).brokers
        assert [f"{node.host}:{node.port}" for node in described.values()] == [address]
        proxy.cut()
        with pytest.raises(TailraceError):
            require_broker(address, timeout_s=1)
        assert require_broker(broker.bootstrap_servers) == 1, "the way without the proxy is open"
        proxy.restore()
        with Collector(address, topic) as out:
            produce(address, topic, [{"id": 1}])
            until(lambda: len(out.rows()) == 1, "the record")


def test_a_cluster_id_that_begins_with_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    """One random id in 64 does."""
    monkeypatch.setattr("tailrace._broker.launch.urlsafe_b64encode", lambda _: b"-BCDEFGHIJKLMNOPQRSTUV")
    with EmbeddedKafka() as broker:
        assert require_broker(broker.bootstrap_servers) == 1


@pytest.mark.parametrize(
    "sign",
    [
        signal.SIGKILL,
        # Tests of `demo` and `bench` send these, with a broker that must be gone as well.
        pytest.param(signal.SIGTERM, marks=pytest.mark.chaos),
        pytest.param(signal.SIGINT, marks=pytest.mark.chaos),
    ],
)
def test_it_is_gone_with_its_owner(sign: signal.Signals) -> None:
    code = (
        "import time; from tailrace import EmbeddedKafka\n"
        "kafka = EmbeddedKafka().start()\n"
        "print(kafka.pid, kafka._folder, flush=True)\n"
        "time.sleep(600)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
    assert owner.stdout is not None
    pid, folder = owner.stdout.readline().split()
    assert alive(int(pid))
    owner.send_signal(sign)
    owner.wait()
    owner.stdout.close()
    until(lambda: not alive(int(pid)), "the broker is gone")
    until(lambda: not Path(folder).exists(), "its data is gone")


def test_a_taken_port(kafka: EmbeddedKafka) -> None:
    begun = time.monotonic()
    with pytest.raises(TailraceError) as failure:
        EmbeddedKafka(port=kafka.port).start()
    assert failure.value.code == "TAILRACE_PORT_TAKEN"
    assert str(kafka.port) in failure.value.problem
    assert time.monotonic() - begun < stretched(30)


def test_a_broker_that_is_not_there() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TailraceError) as failure:
            require_broker(address, timeout_s=1)
    assert failure.value.code == "TAILRACE_BROKER_UNREACHABLE"
    assert address in failure.value.problem


def left_behind(state: Path) -> list[str]:
    return [entry.name for entry in (state / "kafka").iterdir() if entry.name != "lock"]


class TestInTheBackground:
    @pytest.fixture
    def state(self, tmp_path: Path) -> dict[str, str]:
        return {"TAILRACE_STATE": str(tmp_path)}

    def test_start_status_stop(self, state: dict[str, str], tmp_path: Path) -> None:
        assert tailrace_cli("kafka", "status", env=state).returncode == 1
        started = tailrace_cli("kafka", "start", "--topic", "payments:3", "--json", env=state)
        assert started.returncode == 0, started.stderr
        described = json.loads(started.stdout)
        try:
            topics = AdminClient({"bootstrap.servers": described["bootstrap_servers"]}).list_topics(timeout=60).topics
            assert len(topics["payments"].partitions) == 3
            assert json.loads(tailrace_cli("kafka", "status", "--json", env=state).stdout) == described
            again = tailrace_cli("kafka", "start", env=state)
            assert again.stdout.strip() == described["bootstrap_servers"], "a second start finds the first broker"
            other = tailrace_cli("kafka", "start", "--port", "1", env=state)
            assert (other.returncode, "TAILRACE_BROKER_ALREADY_RUNNING" in other.stderr) == (1, True)
        finally:
            assert tailrace_cli("kafka", "stop", env=state).returncode == 0
        assert not alive(described["pid"])
        assert left_behind(tmp_path) == []
        assert tailrace_cli("kafka", "stop", env=state).returncode == 0, "stopping nothing is no error"

    def test_one_that_died_is_forgotten(self, state: dict[str, str], tmp_path: Path) -> None:
        described = json.loads(tailrace_cli("kafka", "start", "--json", env=state).stdout)
        os.kill(described["pid"], signal.SIGKILL)
        until(lambda: not alive(described["pid"]), "the broker is dead")
        assert tailrace_cli("kafka", "status", env=state).returncode == 1
        assert left_behind(tmp_path) == []

    def test_a_taken_port(self, state: dict[str, str], kafka: EmbeddedKafka) -> None:
        result = tailrace_cli("kafka", "start", "--port", str(kafka.port), env=state)
        assert result.returncode == 1
        assert "TAILRACE_PORT_TAKEN" in result.stderr
        assert "Traceback" not in result.stderr

    def test_a_bad_topic(self, state: dict[str, str]) -> None:
        result = tailrace_cli("kafka", "start", "--topic", "payments:many", env=state)
        assert result.returncode == 1
        assert "TAILRACE_BAD_TOPIC" in result.stderr
