"""Latency of the stateful operators, each compared with the native aggregation."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import tailrace
from benchmarks.common import PARTITIONS, Bench, print_table, raise_if_failed, read, running, session, spread
from benchmarks.progress import Progress
from benchmarks.stateful_queries import KINDS, NATIVE, Kind
from benchmarks.stateful_records import ENCODE_A_KEY_EACH, ENCODE_IN_BURSTS
from tailrace.demo.run import SHORTEST_EPOCH_KEY
from tailrace.errors import TailraceError
from tailrace.loadtest import LatencyReport, LoadSnapshot, LoadTest, epoch_ends
from tailrace.loadtest._child import Child
from tailrace.loadtest.epochs import wait_for_epochs

# A pause may last longer on a slow machine, but rows this close to a boundary are not typical in any case.
AROUND_A_BOUNDARY_S = 1.0
LEAD_S = 1.0
LEVEL_MS, CAUGHT_UP_WITHIN_S = 250, 15
SETTINGS = {
    # A join has two sources: 2 + 2 + 2 tasks at once, and one slot to spare.
    "spark.master": f"local[{3 * PARTITIONS + 1}]",
    SHORTEST_EPOCH_KEY: "1000",
    # The benchmark warms up all queries itself, with and without a watermark.
    "spark.tailrace.warmup.epochs": "0",
}


@dataclass(frozen=True)
class Plan:
    rates: tuple[int, ...] = (200, 1000)
    passes: int = 2
    epoch_s: int = 10
    seconds: int = 20
    settled_s: int = 5
    """How long each query runs before it is measured."""
    warm_up_epochs: int = 5

    @classmethod
    def quick(cls) -> Plan:
        return cls(rates=(100,), passes=1, epoch_s=4, seconds=8, settled_s=2, warm_up_epochs=2)


class Load(LoadTest):
    """Keeps each record's latency, so passes can be merged and boundaries separated."""

    latencies_us: list[tuple[float, int]]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, on_snapshot=self._see)
        self._last_p50_ms = math.inf

    def wait_until_level(self, check: Callable[[], None]) -> bool:
        """True if the query has caught up with the rows that arrived during its start, which are not measured."""
        deadline = time.monotonic() + CAUGHT_UP_WITHIN_S
        while self._last_p50_ms > LEVEL_MS and time.monotonic() < deadline:
            check()
            time.sleep(0.1)
        return self._last_p50_ms <= LEVEL_MS

    def _see(self, snapshot: LoadSnapshot) -> None:
        self._last_p50_ms = snapshot.p50_ms if snapshot.records else math.inf

    def _by_due_time(self, result: dict[str, Any], from_ns: int) -> list[tuple[float, int]]:
        self.latencies_us = super()._by_due_time(result, from_ns)
        return self.latencies_us


@dataclass(frozen=True)
class Pass:
    report: LatencyReport
    latencies_us: list[tuple[float, int]]
    epoch_ends_s: list[float]
    level: bool

    def between_boundaries(self) -> list[tuple[float, int]]:
        return [
            (due_s, latency)
            for due_s, latency in self.latencies_us
            if all(abs(due_s - end) > AROUND_A_BOUNDARY_S for end in self.epoch_ends_s)
        ]


@dataclass(frozen=True)
class Figures:
    """All passes of one query at one rate, merged."""

    whole: LatencyReport
    between: LatencyReport
    pauses_ms: list[float]
    level: bool

    @classmethod
    def of(cls, passes: list[Pass]) -> Figures:
        return cls(
            _together(passes, [one.latencies_us for one in passes]),
            _together(passes, [one.between_boundaries() for one in passes]),
            [pause for one in passes for pause in one.report.pauses_ms],
            all(one.level for one in passes),
        )


def _together(passes: list[Pass], latencies_us: list[list[tuple[float, int]]]) -> LatencyReport:
    return LatencyReport.from_latencies(
        [one for each in latencies_us for one in each],
        expected=sum(one.report.expected for one in passes),
        duplicates=sum(one.report.duplicates for one in passes),
        started_ns=0,
        seconds=sum(one.report.seconds for one in passes),
    )


Measured = dict[tuple[int, Kind], Figures]


def print_tables(kafka: tailrace.EmbeddedKafka, plan: Plan) -> None:
    with session(**SETTINGS) as spark:
        bench = Bench(kafka, spark)
        kinds = warmed_up(bench, plan)
        measured = measure(bench, plan, kinds)
    print_figures(measured)
    print_bars(measured)


def warmed_up(bench: Bench, plan: Plan) -> list[Kind]:
    """The queries that keep up, each with some boundaries behind it."""
    progress = Progress("latency: warming up", len(KINDS))
    kinds = []
    for kind in KINDS:
        progress.step(kind.name)
        try:
            with loaded(bench, kind, max(plan.rates), 1, 0) as (query, load):
                load.wait_for_output(timeout_s=90, check=lambda: raise_if_failed(query))
                wait_for_epochs(query, plan.warm_up_epochs, check=lambda: raise_if_failed(query))
            kinds.append(kind)
        except TailraceError as failure:
            # Skip a query that cannot keep up with the higher rate; the others remain valid.
            if failure.code not in ("TAILRACE_QUERY_FAILED", "TAILRACE_NO_OUTPUT"):
                raise
            print(f"Skipped: {kind.name} cannot keep up with {max(plan.rates)} rows/s. {failure.problem}\n")
    return kinds


def measure(bench: Bench, plan: Plan, kinds: list[Kind]) -> Measured:
    """Every other pass runs in reverse, so a machine that slows down or recovers affects all queries alike."""
    progress = Progress("latency", len(plan.rates) * plan.passes * len(kinds))
    passes: dict[tuple[int, Kind], list[Pass]] = defaultdict(list)
    for rate in plan.rates:
        for number in range(plan.passes):
            for kind in kinds if number % 2 == 0 else reversed(kinds):
                progress.step(f"{rate} rows/s, pass {number + 1} of {plan.passes}, {kind.name}")
                try:
                    passes[rate, kind].append(one_pass(bench, plan, kind, rate, number))
                except TailraceError as failure:
                    # A problem of the machine, not of the query: the other passes remain valid.
                    if failure.code != "TAILRACE_GENERATOR_TOO_SLOW":
                        raise
                    print(f"Skipped: a pass of {kind.name} at {rate} rows/s. {failure.problem}\n", flush=True)
    return {(rate, kind): Figures.of(passes[rate, kind]) for rate in plan.rates for kind in kinds if passes[rate, kind]}


def one_pass(bench: Bench, plan: Plan, kind: Kind, rate: int, number: int) -> Pass:
    with loaded(bench, kind, rate, plan.epoch_s, number) as (query, load):

        def check() -> None:
            raise_if_failed(query)

        load.wait_for_output(timeout_s=90, records=int(load.rate * plan.settled_s), check=check)
        level = load.wait_until_level(check)
        report = load.measure(seconds=plan.seconds, check=check)
        ends = epoch_ends(query)
        ends_s = [end - report.started_ns / 1e9 for end in ends]
        return Pass(report.with_epoch_ends(ends), load.latencies_us, ends_s, level)


@contextmanager
def loaded(bench: Bench, kind: Kind, rate: int, epoch_s: int, number: int) -> Iterator[tuple[Any, Load]]:
    """The query under a load of `rate` rows a second in all.

    A join gets half of them on each side. The sides take turns to lead from pass to pass. The other side is measured:
    each of its rows completes a match.
    """
    sources, target = [bench.topic() for _ in range(kind.streams)], bench.topic()
    rows = [read(bench.spark, bench.servers, source) for source in sources]
    each = rate / kind.streams
    encode = ENCODE_IN_BURSTS if kind.streams == 1 else ENCODE_A_KEY_EACH
    order = sources if number % 2 == 0 else sources[::-1]
    with ExitStack() as stack:
        query = stack.enter_context(running(kind.query(*rows), bench.servers, target, epoch=f"{epoch_s} seconds"))
        for leader in order[:-1]:
            stack.enter_context(leading(bench.servers, leader, each, encode))
        load = Load(
            bootstrap_servers=bench.servers, input_topic=order[-1], output_topic=target, rate=each, encode=encode
        )
        stack.enter_context(load)
        yield query, load


@contextmanager
def leading(servers: str, topic: str, rate: float, encode: str) -> Iterator[None]:
    """The first rows of matches, on the same schedule as the second ones but a second or more earlier."""
    config = {
        "bootstrap_servers": servers,
        "topics": [topic],
        "rate": rate,
        "encode": encode,
        "encode_options": {},
    }
    started = threading.Event()
    generator = Child("tailrace.loadtest.generator", config, lambda _: started.set())
    try:
        if not started.wait(30):
            generator.raise_if_failed()
            raise TimeoutError("the load of the leading side did not start")
        time.sleep(LEAD_S)
        yield
        generator.raise_if_failed()
    finally:
        generator.close()


def print_figures(measured: Measured) -> None:
    table = []
    for (rate, kind), found in measured.items():
        cells = [f"{value:.1f}" for value in found.whole.percentiles().values()]
        pauses = spread(found.pauses_ms) if found.pauses_ms else "–"
        counts = [f"{found.whole.received:,}", str(found.whole.lost), str(found.whole.duplicates)]
        name = kind.name if found.level else f"{kind.name} (behind its load from the start)"
        table.append([str(rate), name, *cells, f"{found.between.p99_ms:.1f}", pauses, *counts])
    head = ["rows/s", "query", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms", "p99 between boundaries, ms"]
    print_table([*head, "pause at a boundary, ms: median [least–most]", "answers", "lost", "duplicates"], table)


def print_bars(measured: Measured) -> None:
    print("Times the native aggregation's, of the same rate:\n")
    table = []
    for (rate, kind), found in measured.items():
        base = measured.get((rate, NATIVE))
        if kind.most is None or base is None:
            continue
        ratios = [
            found.whole.p50_ms / base.whole.p50_ms,
            found.whole.p99_ms / base.whole.p99_ms,
            found.between.p99_ms / base.between.p99_ms,
        ]
        # Lost records would have been the slowest.
        verdict = "holds" if max(ratios[:2]) <= kind.most and not found.whole.lost else "MISSED"
        table.append([str(rate), kind.name, *(f"{ratio:.2f}" for ratio in ratios), f"≤ {kind.most}", verdict])
    head = ["rows/s", "query", "p50", "p99", "p99 between boundaries", "bar for p50 and p99", ""]
    print_table(head, table)


def method(plan: Plan) -> str:
    return (
        f"Method: {PARTITIONS} partitions, epochs of {plan.epoch_s} s, {plan.passes} × {plan.seconds} s of each "
        "query in turns, every other pass backwards, all latencies of the passes taken together; open loop, from "
        "the intended send time to an independent consumer. 1,000 keys, a hundred at a time with ten rows each. "
        "The join has half the rows on each side, and each has one match on the other: it counts from the "
        "intended send time of its second row, more than a second after the first, on the right and on the left "
        f"in turns from pass to pass. *Between boundaries* leaves out what was due within {AROUND_A_BOUNDARY_S:g} "
        "s of an epoch's end."
    )
