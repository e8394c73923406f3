"""What faults act on: the driver, the broker, a store, the network between them, the disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tailrace._kafka.cluster import Servers
from tailrace._process.machine_load import stretched
from tailrace.chaos._events import Event
from tailrace.chaos.driver import Driver
from tailrace.chaos.load import LoadGenerator
from tailrace.chaos.output_watcher import OutputWatcher
from tailrace.chaos.own_queries import OwnQueries
from tailrace.chaos.proxy import TcpProxy
from tailrace.chaos.stores import Store
from tailrace.errors import TailraceError
from tailrace.kafka import EmbeddedKafka

FLOWING_WITHIN_S = 180
STOPPED_WITHIN_S = 60
LOOK_EVERY_S = 0.05


@dataclass
class DriverVariant:
    """What may differ from one start of our own driver to the next."""

    on_cluster: bool = False
    shuffle_partitions: int = 2


@dataclass
class Testbed:
    bootstrap_servers: Servers
    queries: tuple[str, ...]
    driver: Driver
    load: LoadGenerator
    watcher: OutputWatcher
    outputs: dict[str, tuple[str, ...]]
    """Each query's outputs: topics, or tables or keys of a store."""
    broker: EmbeddedKafka | None = None
    """The embedded broker; none if the user's is used, which is not ours to harm."""
    proxy: TcpProxy | None = None
    checkpoints: Path | None = None
    variant: DriverVariant | None = None
    """None if the driver is the user's script, and so are the next ones."""
    own: OwnQueries | None = None
    events: list[Event] = field(default_factory=list)
    stores: dict[str, Store] = field(default_factory=dict)
    """By sink."""
    store_proxies: list[TcpProxy] = field(default_factory=list)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def restart_driver(self) -> None:
        """SIGKILL, and the next one at once."""
        self.driver.kill()
        if self.variant is not None:
            self.variant.on_cluster = False
        if self.own is not None:
            self.own.restart()
        self.driver.start()

    def wait_for_step(self, name: str, *, since: float) -> bool:
        """Whether the driver has come to a step of its start in time."""
        return self._until(lambda: any(e.name == name and e.at >= since for e in list(self.events)))

    def wait_for_queries(self, name: str, *, since: float) -> bool:
        """Whether every query has come to a step, such as `started`, in time."""
        return self._until(
            lambda: set(self.queries) <= {e.query for e in list(self.events) if e.name == name and e.at >= since},
            STOPPED_WITHIN_S,
        )

    def wait_for_event(self, query: str, names: tuple[str, ...], *, since: float) -> bool:
        """Whether one query has come to one of these steps in time."""
        return self._until(
            lambda: any(e.query == query and e.name in names and e.at >= since for e in list(self.events)),
            STOPPED_WITHIN_S,
        )

    def refusal(self, query: str, *, since: float) -> str | None:
        """The code with which a query was refused or ended before it gave rows; none if it gives rows.

        Without a code nothing was refused: a broker or a disk may be away, and the query is started again.
        """
        self.watcher.mark(self.load.sent)

        def code() -> str | None:
            reasons = [e.reason for e in list(self.events) if e.query == query and e.at >= since and e.reason]
            found = (TailraceError.find_in(reason) for reason in reasons)
            return next((error.code for error in found if error is not None), None)

        self._until(lambda: self.flowing_since(query) is not None or code() is not None)
        return None if self.flowing_since(query) is not None else code()

    def start(self) -> bool:
        """Whether every query gives rows. The driver of an earlier piece runs the new queries."""
        begun = time.monotonic()
        self.load.start()
        if not self.driver.is_running:
            self.driver.start()
        self.watcher.mark(0)

        def flowing() -> bool:
            self._raise_if_refused(begun)
            return self._all_flowing()

        return self._until(flowing)

    def stop_queries(self) -> None:
        """Let the driver stop all its queries, for those of the next piece; kill it if it does not."""
        if self.own is None:
            return
        begun = time.monotonic()
        self.own.want_none()
        if not self.driver.is_running or self.driver.has_ended or not self.wait_for_queries("stopped", since=begun):
            self.driver.kill()

    def wait_until_flowing(self) -> bool:
        """Whether every query gives rows, in time and from every partition, that were sent after this call."""
        self.watcher.mark(self.load.sent)
        return self._until(self._all_flowing)

    def _all_flowing(self) -> bool:
        return all(self.flowing_since(query) is not None for query in self.queries)

    def _raise_if_refused(self, since: float) -> None:
        """A query that cannot be started, though nothing has happened to it yet, will not get better."""
        refused = next((e for e in list(self.events) if e.name == "refused" and e.at >= since), None)
        if refused is not None:
            raise TailraceError.find_in(refused.reason) or TailraceError(
                "TAILRACE_QUERY_FAILED",
                f"{refused.query} does not start: {refused.reason}",
                f"read its log: {self.driver.log}",
            )

    def flowing_since(self, query: str) -> float | None:
        return self.watcher.flowing_since(query, self.load.partitions)

    def _until(self, condition: Callable[[], bool], within_s: float = FLOWING_WITHIN_S) -> bool:
        begun = time.monotonic()
        while not condition():
            if time.monotonic() - begun > stretched(within_s):
                return False
            self.start_again_if_ended()
            self.pause(LOOK_EVERY_S)
        return True

    def start_again_if_ended(self) -> None:
        """A driver that ended by itself is started again, as a supervisor would."""
        if self.driver.has_ended:
            self.events.append(Event("driver-ended", time.monotonic()))
            if self._ends_at_once():
                raise TailraceError(
                    "TAILRACE_QUERY_FAILED",
                    "the process that runs the query ends by itself, again and again.",
                    f"read its log: {self.driver.log}",
                )
            self.restart_driver()

    def _ends_at_once(self) -> bool:
        """Three times without a row in between."""
        ends = [event.at for event in self.events if event.name == "driver-ended"]
        return len(ends) >= 3 and self.watcher.last_new_at < ends[-3]
