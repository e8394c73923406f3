"""What a record waits for on its way: functions, the sink, the broker, epoch boundaries."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.contract.findings import Finding, warning
from tailrace.monitor.findings.evidence import MAIN_PART, NOTABLE_MS, STALL_MS, WINDOW, Evidence, value, warning_if
from tailrace.monitor.wording import counted, milliseconds


def slow_python(evidence: Evidence) -> Iterator[Finding]:
    for percentile, name, least in (("p99_ms", "p99", NOTABLE_MS), ("max_ms", "at most", STALL_MS)):
        taken, whole = evidence.get("python", percentile), evidence.get("processing", percentile)
        if taken >= least and taken >= MAIN_PART * whole:
            stage, task = _slowest_python(evidence, percentile)
            yield warning(
                "TAILRACE_SLOW_PYTHON",
                f"A Python function takes {milliseconds(taken)} ({name})",
                f"in stage {stage}, partition {task}; that is most of the {milliseconds(whole)} ({name}) between "
                "reading a row and handing it to the sink.",
                "make the function faster (vectorize it with pandas_udf, load models once, cache look-ups), or give "
                "it more partitions.",
            )
            return


def _slowest_python(evidence: Evidence, percentile: str) -> tuple[int, int]:
    tasks = [(stage.stage, task) for stage in evidence.query.stages for task in stage.tasks]
    stage, task = max(tasks, key=lambda one: value(one[1].windows[WINDOW].python, percentile))
    return stage, task.partition


# The sinks of stores, as a plan names them: the store, and where to look for what makes it slow.
STORES = {
    "postgresql": (
        "PostgreSQL",
        "pg_stat_activity shows what commits wait for: a lock, a trigger or an index of the table, the disk, a replica",
    ),
    "redis": (
        "Redis",
        "SLOWLOG GET and INFO show what it waits for: other clients' slow commands, a fork, the disk, swapping",
    ),
}


def slow_store(evidence: Evidence) -> Iterator[Finding]:
    """Compared with the time in the query: a backlog is most of the latency then, but an effect and not the cause."""
    store = next((store for stage in evidence.query.stages if (store := STORES.get(stage.sink or ""))), None)
    if store is None:
        return
    name, where_to_look = store
    # A query that lags has no steady minute, and its batches are large: only a long wait is the store's fault.
    lagging = evidence.is_lagging
    window = evidence.query.windows["10s"] if lagging else evidence.window
    bounds = (("p50_ms", "p50", STALL_MS if lagging else NOTABLE_MS), ("p99_ms", "p99", STALL_MS))
    for percentile, shown, least in bounds[:1] if lagging else bounds:
        waited, processed = (value(window.figure(one), percentile) for one in ("acknowledgement", "processing"))
        if waited >= least and waited >= processed:
            blocks = value(window.figure("sink"), "max_ms") >= STALL_MS
            yield warning(
                "TAILRACE_SLOW_STORE",
                f"Rows wait {milliseconds(waited)} ({shown}) for {name} to commit them",
                f"the query itself takes {milliseconds(processed)} ({shown}) for a row."
                + (" It reads no faster than the store writes." if blocks else ""),
                f"{where_to_look}.",
            )
            return


def slow_sink(evidence: Evidence) -> Iterator[Finding]:
    if any(True for _ in slow_store(evidence)):
        return
    for figure, what in (("sink", "The call of the sink"), ("acknowledgement", "The sink's acknowledgement")):
        for percentile, name, least in (("p99_ms", "p99", NOTABLE_MS), ("max_ms", "at most", STALL_MS)):
            taken, whole = evidence.get(figure, percentile), evidence.get("end_to_end", percentile)
            if taken >= least and taken >= MAIN_PART * whole:
                yield warning(
                    "TAILRACE_SLOW_SINK",
                    f"{what} takes {milliseconds(taken)} ({name})",
                    f"that is most of the {milliseconds(whole)} ({name}) that records take end to end.",
                    "look at the sink: for Kafka its acks, replicas and linger.ms; for a function the calls it makes.",
                )
                return


def slow_broker(evidence: Evidence) -> Iterator[Finding]:
    waited, acknowledged = evidence.get("source_queue", "max_ms"), evidence.get("acknowledgement", "max_ms")
    both = min(waited, acknowledged)
    if both >= STALL_MS and evidence.longest_pause_ms < MAIN_PART * both and not evidence.is_lagging:
        yield warning(
            "TAILRACE_SLOW_BROKER",
            f"Kafka did not answer for up to {milliseconds(both)}",
            f"records were up to {milliseconds(waited)} old when they could be read, and acknowledgements took up to "
            f"{milliseconds(acknowledged)}, within the same minute.",
            "look at the brokers and the network between: a pause, an election or a full disk shows on both sides.",
        )


def late_records(evidence: Evidence) -> Iterator[Finding]:
    if evidence.is_lagging:
        return
    for percentile, name, least in (("p50_ms", "p50", NOTABLE_MS), ("max_ms", "at most", STALL_MS)):
        waited, whole = evidence.get("source_queue", percentile), evidence.get("end_to_end", percentile)
        is_ours = percentile == "max_ms" and evidence.longest_pause_ms >= MAIN_PART * waited
        if waited >= least and waited >= MAIN_PART * whole and not is_ours:
            yield warning(
                "TAILRACE_LATE_RECORDS",
                f"Records are {milliseconds(waited)} old ({name}) before Spark can read them",
                f"that is most of the {milliseconds(whole)} ({name}) that they take end to end, and there is no "
                "backlog: they arrive late at the source.",
                "lower the producers' linger.ms and look at their acks; compare the clocks of producers and executors.",
            )
            return


def epoch_boundaries(evidence: Evidence) -> Iterator[Finding]:
    pauses, tail = evidence.pauses_ms, evidence.get("end_to_end", "p999_ms")
    if pauses and max(pauses) >= MAIN_PART * tail and max(pauses) >= NOTABLE_MS:
        yield Finding(
            "TAILRACE_EPOCH_BOUNDARIES",
            warning_if(max(pauses) >= STALL_MS),
            f"Nothing is read for {milliseconds(max(pauses))} between epochs",
            f"{counted(len(pauses), 'boundary', 'boundaries')} in the last minute, {milliseconds(sum(pauses))} "
            f"together; the p99.9 is {milliseconds(tail)}.",
            'longer epochs have fewer boundaries: .trigger(realTime="5 minutes").',
        )
