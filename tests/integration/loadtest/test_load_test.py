"""The load test is right: its figures show what is delayed, lost or duplicated on purpose."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tailrace import EmbeddedKafka, TailraceError
from tailrace._process.machine_load import stretched
from tailrace.loadtest import LoadTest
from tests.helpers.processes import alive, descendants
from tests.helpers.topics import new_topic
from tests.helpers.waiting import comparing_times, until

# The smallest pipeline: copies records one by one. It can be told to drop or to double some.
RELAY = """
import json, sys
from confluent_kafka import Consumer, Producer, TopicPartition
servers, source, target, drop_every, double_every = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": servers, "group.id": "relay", "fetch.wait.max.ms": 5})
consumer.assign([TopicPartition(source, 0, 0), TopicPartition(source, 1, 0)])
producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
while True:
    for message in consumer.consume(100, 0.01):
        number = json.loads(message.value())["number"]
        copies = 0 if number % int(drop_every) == 7 else 2 if number % int(double_every) == 9 else 1
        for _ in range(copies):
            producer.produce(target, key=message.key(), value=message.value())
        producer.poll(0)
"""
NEVER = 10**9


class Relay:
    def __init__(self, kafka: EmbeddedKafka, *, drop_every: int = NEVER, double_every: int = NEVER) -> None:
        self.servers = kafka.bootstrap_servers
        self.source, self.target = new_topic(self.servers, "in"), new_topic(self.servers, "out")
        arguments = [self.servers, self.source, self.target, str(drop_every), str(double_every)]
        self.process = subprocess.Popen([sys.executable, "-c", RELAY, *arguments])

    def load(self, rate: float) -> LoadTest:
        return LoadTest(bootstrap_servers=self.servers, input_topic=self.source, output_topic=self.target, rate=rate)


@contextmanager
def relay(kafka: EmbeddedKafka, *, drop_every: int = NEVER, double_every: int = NEVER) -> Iterator[Relay]:
    running = Relay(kafka, drop_every=drop_every, double_every=double_every)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def test_a_pipeline_stopped_for_a_second_shows_a_second(kafka: EmbeddedKafka) -> None:
    """Also in the middle of the distribution's tail: all records that were due meanwhile are late."""
    with relay(kafka) as pipeline, pipeline.load(rate=200) as load:
        load.wait_for_output(timeout_s=stretched(30), records=100)
        paused: list[subprocess.Popen[bytes]] = []

        def pause_once() -> None:
            if not paused:
                pipeline.process.send_signal(signal.SIGSTOP)
                paused.append(subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {pipeline.process.pid}"]))

        report = load.measure(seconds=5, check=pause_once)
        paused[0].wait()
    assert report.lost == 0
    assert report.duplicates == 0
    assert report.expected == report.received == pytest.approx(1000, abs=1)
    with comparing_times():
        assert 900 < report.max_ms < 3000
        # A fifth of the load was due during the pause. A closed loop would have sent one slow record.
        assert report.p90_ms > 400
        assert report.p50_ms < 400
        slow_seconds = [point for point in report.timeline if point.max_ms > 500]
        assert 1 <= len(slow_seconds) <= 3


def test_it_adds_little_by_itself(kafka: EmbeddedKafka) -> None:
    """No pipeline at all: the observer reads what the generator writes."""
    topic = new_topic(kafka.bootstrap_servers, "direct")
    with LoadTest(bootstrap_servers=kafka.bootstrap_servers, input_topic=topic, output_topic=topic, rate=100) as load:
        load.wait_for_output(timeout_s=stretched(30), records=50)
        report = load.measure(seconds=3)
    assert (report.lost, report.duplicates) == (0, 0)
    with comparing_times():
        # Generous for a busy machine, and far below what waiting for a poll to fill up would cost.
        assert report.p50_ms < 8


def test_losses_and_duplicates_are_counted(kafka: EmbeddedKafka) -> None:
    with relay(kafka, drop_every=100, double_every=50) as pipeline, pipeline.load(rate=200) as load:
        load.wait_for_output(timeout_s=stretched(30), records=20)
        report = load.measure(seconds=3, patience_s=2)
    assert report.expected == pytest.approx(600, abs=1)
    assert report.lost == pytest.approx(6, abs=1)
    assert report.duplicates == pytest.approx(12, abs=1)
    assert report.received == report.expected - report.lost


def test_a_pipeline_without_output(kafka: EmbeddedKafka) -> None:
    topics = new_topic(kafka.bootstrap_servers, "in"), new_topic(kafka.bootstrap_servers, "out")
    with LoadTest(
        bootstrap_servers=kafka.bootstrap_servers, input_topic=topics[0], output_topic=topics[1], rate=50
    ) as load:
        with pytest.raises(TailraceError) as failure:
            load.wait_for_output(timeout_s=1)
        assert failure.value.code == "TAILRACE_NO_OUTPUT"
        report = load.measure(seconds=1, patience_s=0.5)
    assert report.lost == report.expected > 0
    assert report.p99_ms == 0
    assert "lost" in report.text()


def test_a_rate_beyond_the_machine_is_said_so(kafka: EmbeddedKafka) -> None:
    with relay(kafka) as pipeline, pipeline.load(rate=5_000_000) as load:
        with pytest.raises(TailraceError) as failure:
            load.measure(seconds=1, patience_s=0)
        assert failure.value.code == "TAILRACE_GENERATOR_TOO_SLOW"


def test_a_missing_topic_is_an_error_and_not_a_hang(kafka: EmbeddedKafka) -> None:
    with (
        pytest.raises(TailraceError) as failure,
        LoadTest(bootstrap_servers=kafka.bootstrap_servers, input_topic="nowhere", output_topic="nowhere", rate=1),
    ):
        pass
    assert failure.value.code == "TAILRACE_HARNESS_FAILED"


def test_its_processes_are_gone_with_their_owner(kafka: EmbeddedKafka) -> None:
    topics = new_topic(kafka.bootstrap_servers, "in"), new_topic(kafka.bootstrap_servers, "out")
    code = (
        "import time; from tailrace.loadtest import LoadTest\n"
        f"load = LoadTest(bootstrap_servers={kafka.bootstrap_servers!r}, input_topic={topics[0]!r},\n"
        f"                output_topic={topics[1]!r}, rate=10).__enter__()\n"
        "print('running', flush=True); time.sleep(600)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "running\n"
    children = descendants(owner.pid)
    assert len(children) == 2
    owner.kill()
    owner.wait()
    owner.stdout.close()
    until(lambda: not any(alive(child) for child in children), "both processes are gone")


def test_a_store_is_read_by_the_users_reader(kafka: EmbeddedKafka) -> None:
    topic = new_topic(kafka.bootstrap_servers, "store")
    with LoadTest(
        bootstrap_servers=kafka.bootstrap_servers,
        input_topic=topic,
        rate=100,
        reader="tests.integration.loadtest.store:Reader",
        reader_options={"servers": kafka.bootstrap_servers, "topic": topic},
    ) as load:
        load.wait_for_output(timeout_s=stretched(30), records=50)
        report = load.measure(seconds=3, patience_s=1)
    # Of any 300 records in a row, six are never seen, and six are seen again.
    assert report.expected == pytest.approx(300, abs=1)
    assert (report.lost, report.duplicates) == (6, 6)
    with comparing_times():
        assert 0 < report.p50_ms < 1000


@pytest.mark.parametrize("output", [{}, {"output_topic": "out", "reader": "module:Reader"}])
def test_one_output_is_observed(output: dict[str, str]) -> None:
    with pytest.raises(TailraceError) as refused:
        LoadTest(bootstrap_servers="localhost:1", input_topic="in", rate=1, **output)  # type: ignore[arg-type]
    assert refused.value.code == "TAILRACE_BAD_ARGUMENT"
