"""Faults of the servers that a query depends on: the broker, the store, and the network to them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from tailrace._process.process_table import with_descendants
from tailrace.chaos.schedule import Planned
from tailrace.chaos.stores import Store
from tailrace.chaos.testbed import Testbed


def kill_broker(testbed: Testbed, planned: Planned) -> None:
    assert testbed.broker is not None
    testbed.broker.kill()
    testbed.pause(planned.lasts_s)
    testbed.broker.start()


def restart_broker(testbed: Testbed, planned: Planned) -> None:
    assert testbed.broker is not None
    testbed.broker.shut_down()
    testbed.pause(planned.lasts_s)
    testbed.broker.start()


def stop_broker(testbed: Testbed, planned: Planned) -> None:
    assert testbed.broker is not None
    assert testbed.broker.pid is not None
    os.kill(testbed.broker.pid, signal.SIGSTOP)
    try:
        testbed.pause(planned.lasts_s)
    finally:
        os.kill(testbed.broker.pid, signal.SIGCONT)


def cut_network(testbed: Testbed, planned: Planned) -> None:
    """Between the driver and the broker: half the time connections break, half the time nothing arrives any more."""
    assert testbed.proxy is not None
    testbed.proxy.cut() if planned.pick < 0.5 else testbed.proxy.fall_silent()
    try:
        testbed.pause(planned.lasts_s)
    finally:
        testbed.proxy.restore()


def kill_store(testbed: Testbed, planned: Planned) -> None:
    _start_again(testbed, planned, lambda store: store.server.kill())


def restart_store(testbed: Testbed, planned: Planned) -> None:
    _start_again(testbed, planned, lambda store: store.server.shut_down())


def _start_again(testbed: Testbed, planned: Planned, end: Callable[[Store], None]) -> None:
    for store in testbed.stores.values():
        end(store)
    testbed.pause(planned.lasts_s)
    for store in testbed.stores.values():
        store.server.start()


def stop_store(testbed: Testbed, planned: Planned) -> None:
    """With all its processes: PostgreSQL has one for each connection."""
    pids = [store.server.pid for store in testbed.stores.values()]
    processes = [process for pid in pids if pid is not None for process in with_descendants(pid)]
    for process in processes:
        process.signal(signal.SIGSTOP)
    try:
        testbed.pause(planned.lasts_s)
    finally:
        for process in processes:
            process.signal(signal.SIGCONT)


def cut_store_network(testbed: Testbed, planned: Planned) -> None:
    """As `cut_network`, between the driver and the store. A batch may be written and its acknowledgement lost."""
    for proxy in testbed.store_proxies:
        proxy.cut() if planned.pick < 0.5 else proxy.fall_silent()
    try:
        testbed.pause(planned.lasts_s)
    finally:
        for proxy in testbed.store_proxies:
            proxy.restore()
