"""Measure how long a query takes to recover from SIGKILL, by part, and how that grows with the open epoch.

Prints the table of docs/benchmarks/recovery.md.
A driver with one query is killed when its epoch has been open for a given time, and restarted at once, while records
keep arriving. The driver reports the times of process, session and query. An independent consumer sees the new rows:
rows of records that were sent after the kill, from every partition, so the replay and the backlog are over by then. In
between, the query loads its state, reads the output back (`tailrace-kafka` only), and replays.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tailrace
from benchmarks.common import PARTITIONS, print_table
from tailrace._process.paths import log_file
from tailrace.chaos._events import Event
from tailrace.chaos._settings import DriverSettings, WantedQuery, write_wanted
from tailrace.chaos.driver import Driver
from tailrace.chaos.load import LoadGenerator
from tailrace.chaos.output_watcher import OutputWatcher, TopicReader, Watched
from tailrace.chaos.records import record
from tailrace.loadtest.machine import describe_machine

COMES_WITHIN_S = 180
STEPS = ("process", "session", "queries")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--open-s", type=int, nargs="*", default=[5, 30, 90], help="how long the epoch was open")
    arguments = parser.parse_args()
    rows = []
    for query in ("stateless/kafka", "stateless/tailrace-kafka", "aggregation/kafka", "aggregation/tailrace-kafka"):
        for open_s in arguments.open_s:
            figures = recovery(query, arguments.rate, open_s)
            rows.append([query.replace("/", ", "), str(open_s), *(f"{seconds:.1f}" for seconds in figures)])
    print(f"{arguments.rate} rows/s, {describe_machine()}\n")
    print_table(
        ["query, sink", "epoch open, s", "process", "session", "query started", "new rows, s after the kill"], rows
    )


def recovery(query: str, rate: int, open_s: int) -> list[float]:
    events: list[Event] = []
    with tailrace.EmbeddedKafka() as kafka, tempfile.TemporaryDirectory(prefix="tailrace-bench-") as folder:
        kafka.create_topics(["in", "out"], partitions=PARTITIONS)
        servers, checkpoint = kafka.bootstrap_servers, str(Path(folder) / "checkpoint")
        settings = DriverSettings(f"local[{2 * PARTITIONS + 1}]", servers, folder, PARTITIONS)
        write_wanted(Path(folder), {query: WantedQuery("in", "out", checkpoint, epoch_s=600, warm_up=False)})
        driver = Driver(lambda: ["tailrace.chaos._app", settings.to_json()], log_file("bench-recovery"), events.append)
        load = LoadGenerator(servers, "in", rate=rate, partitions=PARTITIONS, encode=encode)
        outputs = [Watched(query, "out", "number")]
        readers = [TopicReader(servers, ["out"])]
        watcher = OutputWatcher(readers, outputs, number_field="number", partition_of=load.partition_of)
        try:
            load.start()
            driver.start()
            until(lambda: watcher.flowing_since(query, PARTITIONS) is not None)
            time.sleep(open_s)
            driver.kill()
            events.clear()
            watcher.mark(load.sent)
            driver.start()
            until(lambda: watcher.flowing_since(query, PARTITIONS) is not None)
            steps = {event.name: event.at - driver.started_at for event in events}
            flowing = watcher.flowing_since(query, PARTITIONS)
            assert flowing is not None
            return [*(steps[name] for name in STEPS), flowing - driver.started_at]
        finally:
            driver.kill()
            load.abandon()
            watcher.close()


def encode(number: int) -> tuple[str, bytes]:
    made = record(number)
    return made.key, made.to_json()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + COMES_WITHIN_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {COMES_WITHIN_S} s")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
