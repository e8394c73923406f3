"""The faults. Each is a function that returns when the fault is over; recovery is up to the query."""

from __future__ import annotations

import contextlib
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from tailrace.chaos import _processes
from tailrace.chaos._events import Event
from tailrace.chaos._read_only import read_only, why_not_read_only
from tailrace.chaos.schedule import Kind, Planned
from tailrace.chaos.server_faults import (
    cut_network,
    cut_store_network,
    kill_broker,
    kill_store,
    restart_broker,
    restart_store,
    stop_broker,
    stop_store,
)
from tailrace.chaos.testbed import Testbed
from tailrace.chaos.topics import add_partition

T = TypeVar("T")
MOST_PARTITIONS = 4
# Steps of a driver's start at which it is killed again: its queries replay the epoch that was open, and have committed
# nothing. Of a user's script we only know that it runs.
STEPS_OF_OURS, STEPS_OF_YOURS = ("queries", "session"), ("process", "process")


def stop_queries(testbed: Testbed, _planned: Planned) -> None:
    """`query.stop()`, and the next run at once, in the same driver."""
    assert testbed.own is not None
    begun = time.monotonic()
    testbed.own.restart()
    testbed.wait_for_queries("stopped", since=begun)


def change_code(testbed: Testbed, _planned: Planned) -> None:
    _change(testbed, of_code=True)


def change_topic(testbed: Testbed, _planned: Planned) -> None:
    _change(testbed, of_code=False)


def _change(testbed: Testbed, *, of_code: bool) -> None:
    """Stop the queries that can be changed, and start them otherwise. One that is refused is changed back."""
    own = testbed.own
    assert own is not None
    for query in own.changing():
        begun = time.monotonic()
        own.without(query)
        testbed.wait_for_event(query, ("stopped", "ended"), since=begun)
        own.change(query, code=of_code)
        code = testbed.refusal(query, since=time.monotonic())
        if code is not None:
            testbed.events.append(Event("change-refused", time.monotonic(), query, code))
            own.change_back(query)


def kill_driver(testbed: Testbed, _planned: Planned) -> None:
    testbed.restart_driver()


def restart_again_and_again(testbed: Testbed, planned: Planned) -> None:
    """Kill the driver, and its successors while they start, once or twice."""
    testbed.restart_driver()
    steps = STEPS_OF_YOURS if testbed.variant is None else STEPS_OF_OURS
    for step in steps if planned.pick < 0.5 else steps[:1]:
        testbed.wait_for_step(step, since=testbed.driver.started_at)
        testbed.pause(planned.lasts_s)
        testbed.restart_driver()


def change_shuffle_partitions(testbed: Testbed, _planned: Planned) -> None:
    """Kill the driver and start it with another setting, which a query with state must not follow."""
    assert testbed.variant is not None
    testbed.variant.shuffle_partitions = 5 - testbed.variant.shuffle_partitions
    testbed.restart_driver()


def add_topic_partition(testbed: Testbed, _planned: Planned) -> None:
    """Kill the driver and start it on an input topic with one partition more."""
    testbed.driver.kill()
    testbed.load.partitions = add_partition(testbed.bootstrap_servers, testbed.load.topic)
    testbed.restart_driver()


def kill_executor(testbed: Testbed, planned: Planned) -> None:
    """Move to a small cluster first: on a local master there is no executor besides the driver."""
    if testbed.variant is not None and not testbed.variant.on_cluster:
        testbed.driver.kill()
        testbed.variant.on_cluster = True
        testbed.driver.start()
        testbed.wait_until_flowing()
    for process in _chosen(_processes.executors(testbed.driver.processes()), planned.pick):
        process.signal(signal.SIGKILL)


def kill_python_worker(testbed: Testbed, planned: Planned) -> None:
    for process in _chosen(_processes.python_workers(testbed.driver.processes()), planned.pick):
        process.signal(signal.SIGKILL)


def stop_driver(testbed: Testbed, planned: Planned) -> None:
    """SIGSTOP and SIGCONT, as a machine that is suspended or out of breath."""
    testbed.driver.signal(signal.SIGSTOP)
    try:
        testbed.pause(planned.lasts_s)
    finally:
        testbed.driver.signal(signal.SIGCONT)


def lock_checkpoint(testbed: Testbed, planned: Planned) -> None:
    assert testbed.checkpoints is not None
    with read_only(testbed.checkpoints):
        testbed.pause(planned.lasts_s)


def fill_disk(testbed: Testbed, planned: Planned) -> None:
    """No file of the driver's may grow: a full disk, as the query sees it. It needs neither a small disk nor rights."""
    with _no_room(testbed):
        testbed.pause(planned.lasts_s)


@contextmanager
def _no_room(testbed: Testbed) -> Iterator[None]:
    # What we have ourselves is what the driver began with.
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    _limit_files(testbed, (0, most))
    try:
        yield
    finally:
        _limit_files(testbed, (usual, most))


def _limit_files(testbed: Testbed, limits: tuple[int, int]) -> None:
    for process in _processes.java_processes(testbed.driver.processes()):
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)


def _chosen(candidates: Sequence[T], pick: float) -> list[T]:
    """One of them, or none if there is none at this moment."""
    return [candidates[min(int(pick * len(candidates)), len(candidates) - 1)]] if candidates else []


@dataclass(frozen=True)
class Fault:
    kind: Kind
    strike: Callable[[Testbed, Planned], None]
    what: str
    """For the list of faults: what it does."""
    needs_broker: bool = False
    needs_own_queries: bool = False
    needs_changing: bool = False
    needs_store: bool = False

    @property
    def name(self) -> str:
        return self.kind.name


FAULTS = {
    fault.name: fault
    for fault in (
        Fault(
            Kind("query-stop", weight=6),
            stop_queries,
            "query.stop(), and started again in the same driver",
            needs_own_queries=True,
        ),
        Fault(
            Kind("code-change", weight=2),
            change_code,
            "query.stop(), and started again with other code",
            needs_changing=True,
        ),
        Fault(
            Kind("topic-change", weight=2),
            change_topic,
            "query.stop(), and started again with another output topic",
            needs_changing=True,
        ),
        Fault(Kind("driver-kill", weight=3), kill_driver, "SIGKILL to the driver and all its processes"),
        Fault(
            Kind("restarts", lasts_s=(0, 3)),
            restart_again_and_again,
            "SIGKILL to the driver, and again while it starts and replays",
        ),
        Fault(
            Kind("python-worker-kill", weight=2),
            kill_python_worker,
            "SIGKILL to a process that runs Python functions",
        ),
        Fault(
            Kind("executor-kill"),
            kill_executor,
            "SIGKILL to an executor of a small cluster, to which the driver is moved first",
            needs_own_queries=True,
        ),
        Fault(Kind("driver-stop", lasts_s=(1, 10)), stop_driver, "SIGSTOP to the driver, SIGCONT after a while"),
        Fault(Kind("disk-full", lasts_s=(4, 9)), fill_disk, "no file of the driver's can grow"),
        Fault(
            Kind("checkpoint-read-only", lasts_s=(4, 9)),
            lock_checkpoint,
            "nothing can be created in the checkpoint's folders",
            needs_own_queries=True,
        ),
        Fault(
            Kind("shuffle-partitions"),
            change_shuffle_partitions,
            "SIGKILL to the driver, started again with another spark.sql.shuffle.partitions",
            needs_own_queries=True,
        ),
        Fault(
            Kind("topic-partition", at_most=2),
            add_topic_partition,
            "SIGKILL to the driver, started again on an input topic with one partition more",
            needs_own_queries=True,
        ),
        Fault(
            Kind("broker-kill", lasts_s=(0, 4)),
            kill_broker,
            "SIGKILL to the broker, started again with its data",
            needs_broker=True,
        ),
        Fault(
            Kind("broker-restart", lasts_s=(0, 4)),
            restart_broker,
            "the broker is shut down in order, and started again",
            needs_broker=True,
        ),
        Fault(
            Kind("broker-stop", lasts_s=(1, 10)),
            stop_broker,
            "SIGSTOP to the broker, SIGCONT after a while",
            needs_broker=True,
        ),
        Fault(
            Kind("network-cut", lasts_s=(1, 10)),
            cut_network,
            "connections to the broker break, or nothing arrives any more",
            needs_broker=True,
        ),
        Fault(
            Kind("store-kill", weight=2, lasts_s=(0, 4)),
            kill_store,
            "SIGKILL to the server of the store, started again with its data",
            needs_store=True,
        ),
        Fault(
            Kind("store-restart", lasts_s=(0, 4)),
            restart_store,
            "the server of the store is shut down in order, and started again",
            needs_store=True,
        ),
        Fault(
            Kind("store-stop", lasts_s=(1, 10)),
            stop_store,
            "SIGSTOP to the server of the store, SIGCONT after a while",
            needs_store=True,
        ),
        Fault(
            Kind("store-network-cut", lasts_s=(1, 10)),
            cut_store_network,
            "connections to the store break, or nothing arrives any more",
            needs_store=True,
        ),
    )
}


def why_not(fault: Fault, *, own_broker: bool, own_queries: bool, changing: bool, store: bool) -> str | None:
    """Why a fault is unavailable here; None if it is available."""
    if fault.needs_changing and not changing:
        return "it needs the built-in query `changing`"
    if fault.needs_store and not store:
        return "it needs --sink postgresql or redis"
    if fault.needs_broker and not own_broker:
        return "the broker is yours, not an embedded one"
    if fault.needs_own_queries and not own_queries:
        return "it needs the built-in queries"
    if fault.strike is lock_checkpoint:
        return why_not_read_only()
    return None
