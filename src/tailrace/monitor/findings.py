"""What causes the tail: findings from a query's figures, each with its evidence and the remedy.

All rules look at the last minute, so that a finding about a single stall stays long enough to be read; at less of it
while the query has not run steadily for so long, because a start and a backlog are slow in ways of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from tailrace.monitor.query import LAGGING_ROWS
from tailrace.monitor.rolling import STEADY

WINDOW = STEADY

# Shorter than this nobody minds.
NOTABLE_MS = 10.0
# A wait that a person would call a stall.
STALL_MS = 100.0
# A part is the cause when it makes up at least so much of the whole.
MAIN_PART = 0.5
# A partition is hot when it has so many times its fair share, of so many rows that it is not by chance.
HOT = 2.0
ROWS_FOR_A_SHARE = 30
FULL_CPU = 0.9


@dataclass(frozen=True)
class Finding:
    code: str
    severity: str
    title: str
    evidence: str
    remedy: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Evidence:
    query: dict[str, Any]
    executors: list[dict[str, Any]]
    now: float

    @property
    def window(self) -> dict[str, Any]:
        window: dict[str, Any] = self.query["windows"][WINDOW]
        return window

    def get(self, figure: str, percentile: str) -> float:
        return value(self.window[figure], percentile)

    @property
    def seconds(self) -> float:
        return float(self.window["seconds"])

    @property
    def gaps_ms(self) -> list[float]:
        """Of the epoch boundaries within the window."""
        return [one["gap_ms"] for one in self.query["boundaries"] if one["at"] >= self.now - self.seconds]

    @property
    def longest_pause_ms(self) -> float:
        """For how long something of ours kept the query from reading; records that wait meanwhile are not late."""
        own = [self.get(figure, "max_ms") for figure in ("processing", "python", "sink")]
        jvms = [executor[key] or 0.0 for executor in self.executors for key in ("gc_max_ms", "hiccup_max_ms")]
        return max(*own, *jvms, *self.gaps_ms, 0.0)


Rule = Callable[[_Evidence], Iterator[Finding]]
Key = TypeVar("Key")


def find(query: dict[str, Any], executors: list[dict[str, Any]], now: float) -> list[Finding]:
    """The findings on a query's figures, the gravest first."""
    evidence = _Evidence(query, executors, now)
    if query["status"] in ("ended", "failed"):
        return []
    # Without a row there is nothing to explain but why there is none.
    rules = RULES if evidence.window["end_to_end"] is not None else BACKLOG_RULES
    found = [finding for rule in rules for finding in rule(evidence)]
    return sorted(found, key=lambda finding: finding.severity != "warning")


def value(distribution: dict[str, Any] | None, percentile: str) -> float:
    return float(distribution[percentile]) if distribution else 0.0


def milliseconds(duration: float) -> str:
    if duration >= 1000:
        return f"{duration / 1000:.1f} s"
    return f"{duration:.0f} ms" if duration >= 10 else f"{duration:.1f} ms"


def _starved(evidence: _Evidence) -> Iterator[Finding]:
    if not _is_lagging(evidence):
        return
    stuck = [
        one
        for one in evidence.query["partitions"]
        if (one["lag_rows"] or 0) >= LAGGING_ROWS and not one["windows"]["10s"]["rows_in_per_s"]
    ]
    if stuck:
        yield Finding(
            "TAILRACE_PARTITION_NOT_READ",
            "warning",
            f"Nothing is read from {_listed([_place(one) for one in stuck])}",
            f"{sum(one['lag_rows'] for one in stuck):,} rows are waiting there, and none was read in the last 10 s.",
            "give the query a task slot for every partition of every stage; a function, a sink or a broker that does "
            "not answer stops the reading too.",
        )


def _left_out(evidence: _Evidence) -> Iterator[Finding]:
    left_out = evidence.query["left_out"]
    if left_out["records"]:
        is_recent = left_out["last_at"] is not None and left_out["last_at"] >= evidence.now - evidence.seconds
        yield Finding(
            "TAILRACE_RECORDS_LEFT_OUT",
            "warning" if is_recent else "info",
            f"The query goes on without {_counted(left_out['records'], 'record')} that could not be processed",
            f"the last error: {left_out['last_error'] or 'not known'}",
            "the records are in the dead-letter topic, their positions in the executors' logs: mend the query or what "
            "writes them.",
        )


def _lagging(evidence: _Evidence) -> Iterator[Finding]:
    if not _is_lagging(evidence):
        return
    rate = evidence.query["windows"]["10s"]["rows_in_per_s"]
    if rate:
        yield Finding(
            "TAILRACE_LAGGING",
            "warning",
            f"{evidence.query['lag_rows']:,} rows behind the source",
            f"it reads {rate:,.0f} rows/s, which is {evidence.query['lag_rows'] / rate:.1f} s of work; a record waits "
            f"{milliseconds(evidence.get('source_queue', 'p50_ms'))} (p50) before it is read. While there is a "
            "backlog, latency is mostly this wait.",
            "wait if it is catching up after a start or a stop; else add partitions with cores for them, or make the "
            "slowest stage faster.",
        )


def _hot_partition(evidence: _Evidence) -> Iterator[Finding]:
    partitions = evidence.query["partitions"]
    rates = {(one["topic"], one["partition"]): one["windows"][WINDOW]["rows_in_per_s"] for one in partitions}
    hot = _hottest(rates, evidence.seconds)
    if hot is None:
        return
    (topic, partition), share, fair = hot
    tails = {
        (one["topic"], one["partition"]): value(one["windows"][WINDOW]["end_to_end"], "p99_ms") for one in partitions
    }
    others = [tail for place, tail in tails.items() if place != (topic, partition)]
    own = tails[topic, partition]
    yield Finding(
        "TAILRACE_HOT_PARTITION",
        "warning" if own >= NOTABLE_MS and own >= 2 * max(others, default=0) else "info",
        f"Partition {topic}/{partition} gets {share:.0%} of the rows",
        f"{rates[topic, partition]:,.0f} rows/s, where {fair:.0%} would be its share; its p99 is {milliseconds(own)}, "
        f"that of the others up to {milliseconds(max(others, default=0))}.",
        "spread the records: a key with more values, or no key at all where order does not matter.",
    )


def _skewed_keys(evidence: _Evidence) -> Iterator[Finding]:
    for stage in evidence.query["stages"]:
        if not stage["inputs"]:
            continue
        rates = {task["partition"]: task["windows"][WINDOW]["rows_per_s"] for task in stage["tasks"]}
        hot = _hottest(rates, evidence.seconds)
        if hot is None:
            continue
        partition, share, fair = hot
        task = next(task for task in stage["tasks"] if task["partition"] == partition)
        waits = value(task["windows"][WINDOW]["shuffle"], "p99_ms")
        others = [value(one["windows"][WINDOW]["shuffle"], "p99_ms") for one in stage["tasks"] if one is not task]
        yield Finding(
            "TAILRACE_SKEWED_KEYS",
            "warning" if waits >= NOTABLE_MS and waits >= 2 * max(others, default=0) else "info",
            f"One task of stage {stage['stage']} gets {share:.0%} of the rows",
            f"its partition {partition} works on {task['windows'][WINDOW]['rows_per_s']:,.0f} rows/s, where "
            f"{fair:.0%} would be its share; rows reach it after {milliseconds(waits)} (p99), the others after "
            f"{milliseconds(max(others, default=0))}.",
            "a key that is much more frequent than others goes to one task: add another column to the key, aggregate "
            "in two steps, or take that key out.",
        )


def _garbage_collection(evidence: _Evidence) -> Iterator[Finding]:
    tail = evidence.get("end_to_end", "p999_ms")
    for executor in evidence.executors:
        longest = executor["gc_max_ms"]
        if longest >= NOTABLE_MS and longest >= MAIN_PART * tail:
            yield Finding(
                "TAILRACE_GC_PAUSES",
                "warning" if longest >= STALL_MS else "info",
                f"Garbage collection stops executor {executor['id']} for up to {milliseconds(longest)}",
                f"{_counted(executor['gc_pauses'], 'pause')} in the last minute, "
                f"{milliseconds(executor['gc_total_ms'])} together; the query's p99.9 is {milliseconds(tail)}.",
                "give the JVM more memory (spark.driver.memory on a local master, else spark.executor.memory), or "
                "another collector.",
            )


def _slow_broker(evidence: _Evidence) -> Iterator[Finding]:
    waited, acknowledged = evidence.get("source_queue", "max_ms"), evidence.get("acknowledgement", "max_ms")
    both = min(waited, acknowledged)
    if both >= STALL_MS and evidence.longest_pause_ms < MAIN_PART * both and not _is_lagging(evidence):
        yield Finding(
            "TAILRACE_SLOW_BROKER",
            "warning",
            f"Kafka did not answer for up to {milliseconds(both)}",
            f"records were up to {milliseconds(waited)} old when they could be read, and acknowledgements took up to "
            f"{milliseconds(acknowledged)}, within the same minute.",
            "look at the brokers and the network between: a pause, an election or a full disk shows on both sides.",
        )


def _slow_sink(evidence: _Evidence) -> Iterator[Finding]:
    for figure, what in (("sink", "The call of the sink"), ("acknowledgement", "The sink's acknowledgement")):
        for percentile, name, least in (("p99_ms", "p99", NOTABLE_MS), ("max_ms", "at most", STALL_MS)):
            taken, whole = evidence.get(figure, percentile), evidence.get("end_to_end", percentile)
            if taken >= least and taken >= MAIN_PART * whole:
                yield Finding(
                    "TAILRACE_SLOW_SINK",
                    "warning",
                    f"{what} takes {milliseconds(taken)} ({name})",
                    f"that is most of the {milliseconds(whole)} ({name}) that records take end to end.",
                    "look at the sink: for Kafka its acks, replicas and linger.ms; for a function the calls it makes.",
                )
                return


def _late_records(evidence: _Evidence) -> Iterator[Finding]:
    if _is_lagging(evidence):
        return
    for percentile, name, least in (("p50_ms", "p50", NOTABLE_MS), ("max_ms", "at most", STALL_MS)):
        waited, whole = evidence.get("source_queue", percentile), evidence.get("end_to_end", percentile)
        is_ours = percentile == "max_ms" and evidence.longest_pause_ms >= MAIN_PART * waited
        if waited >= least and waited >= MAIN_PART * whole and not is_ours:
            yield Finding(
                "TAILRACE_LATE_RECORDS",
                "warning",
                f"Records are {milliseconds(waited)} old ({name}) before Spark can read them",
                f"that is most of the {milliseconds(whole)} ({name}) that they take end to end, and there is no "
                "backlog: they arrive late at the source.",
                "lower the producers' linger.ms and look at their acks; compare the clocks of producers and executors.",
            )
            return


def _epoch_boundaries(evidence: _Evidence) -> Iterator[Finding]:
    gaps, tail = evidence.gaps_ms, evidence.get("end_to_end", "p999_ms")
    if gaps and max(gaps) >= MAIN_PART * tail and max(gaps) >= NOTABLE_MS:
        yield Finding(
            "TAILRACE_EPOCH_BOUNDARIES",
            "warning" if max(gaps) >= STALL_MS else "info",
            f"Nothing is read for {milliseconds(max(gaps))} between epochs",
            f"{_counted(len(gaps), 'boundary', 'boundaries')} in the last minute, {milliseconds(sum(gaps))} "
            f"together; the p99.9 is {milliseconds(tail)}.",
            'longer epochs have fewer boundaries: .trigger(realTime="5 minutes").',
        )


def _too_few_cores(evidence: _Evidence) -> Iterator[Finding]:
    for executor in evidence.executors:
        late, load = executor["hiccup_p99_ms"] or 0.0, executor["cpu_load"] or 0.0
        if load >= FULL_CPU and late >= NOTABLE_MS / 2:
            yield Finding(
                "TAILRACE_TOO_FEW_CORES",
                "warning" if late >= MAIN_PART * evidence.get("end_to_end", "p99_ms") else "info",
                f"Threads of executor {executor['id']} wait for a core",
                f"the machine's CPUs are {load:.0%} busy; a thread that is due runs up to {milliseconds(late)} late "
                f"(p99), {milliseconds(executor['hiccup_max_ms'] or 0.0)} at most.",
                "give the executors more cores, or move other programs off the machine; task slots beyond the number "
                "of cores do not help.",
            )


def _slow_python(evidence: _Evidence) -> Iterator[Finding]:
    for percentile, name, least in (("p99_ms", "p99", NOTABLE_MS), ("max_ms", "at most", STALL_MS)):
        taken, whole = evidence.get("python", percentile), evidence.get("processing", percentile)
        if taken >= least and taken >= MAIN_PART * whole:
            stage, task = _slowest_python(evidence, percentile)
            yield Finding(
                "TAILRACE_SLOW_PYTHON",
                "warning",
                f"A Python function takes {milliseconds(taken)} ({name})",
                f"in stage {stage}, partition {task}; that is most of the {milliseconds(whole)} ({name}) between "
                "reading a row and handing it to the sink.",
                "make the function faster (vectorize it with pandas_udf, load models once, cache look-ups), or give "
                "it more partitions.",
            )
            return


def _slowest_python(evidence: _Evidence, percentile: str) -> tuple[int, int]:
    tasks = [(stage["stage"], task) for stage in evidence.query["stages"] for task in stage["tasks"]]
    stage, task = max(tasks, key=lambda one: value(one[1]["windows"][WINDOW]["python"], percentile))
    return stage, task["partition"]


def _hottest(rates: dict[Key, float], seconds: float) -> tuple[Key, float, float] | None:
    """The key with much more than its share, its share, and what would be fair; if there is one and it matters."""
    total = sum(rates.values())
    if len(rates) < 2 or total * seconds < ROWS_FOR_A_SHARE * len(rates):
        return None
    hottest = max(rates, key=lambda key: rates[key])
    share, fair = rates[hottest] / total, 1 / len(rates)
    # Of two partitions none can have twice its share.
    return (hottest, share, fair) if share >= min(HOT * fair, 0.75) else None


def _is_lagging(evidence: _Evidence) -> bool:
    return bool(evidence.query["status"] == "lagging")


def _place(partition: dict[str, Any]) -> str:
    return f"{partition['topic']}/{partition['partition']}"


def _counted(number: int, one: str, several: str | None = None) -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"


def _listed(names: list[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


BACKLOG_RULES: tuple[Rule, ...] = (_starved, _left_out, _lagging)
RULES: tuple[Rule, ...] = (
    *BACKLOG_RULES,
    _slow_python,
    _slow_sink,
    _slow_broker,
    _late_records,
    _skewed_keys,
    _hot_partition,
    _garbage_collection,
    _too_few_cores,
    _epoch_boundaries,
)
