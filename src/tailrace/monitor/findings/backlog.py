"""Why rows wait, or never come through."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.contract.findings import Finding, warning
from tailrace.monitor.findings.evidence import Evidence, warning_if
from tailrace.monitor.lag import LAGGING_ROWS
from tailrace.monitor.wording import counted, listed, milliseconds


def partition_not_read(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.is_lagging:
        return
    stuck = [
        one
        for one in evidence.query.partitions
        if (one.lag_rows or 0) >= LAGGING_ROWS and not one.windows["10s"].rows_in_per_s
    ]
    if stuck:
        yield warning(
            "TAILRACE_PARTITION_NOT_READ",
            f"Nothing is read from {listed([one.name for one in stuck])}",
            f"{sum(one.lag_rows or 0 for one in stuck):,} rows are waiting there, and none was read in the last 10 s.",
            "give the query a task slot for every partition of every stage; a function, a sink or a broker that does "
            "not answer stops the reading too.",
        )


def bad_records(evidence: Evidence) -> Iterator[Finding]:
    bad = evidence.query.bad_records
    if bad.records:
        were = "was" if bad.records == 1 else "were"
        is_recent = bad.last_at is not None and bad.last_at >= evidence.now - evidence.seconds
        yield Finding(
            "TAILRACE_BAD_RECORDS",
            warning_if(is_recent),
            f"{counted(bad.records, 'record')} could not be processed and {were} skipped",
            f"the last error: {bad.last_error or 'unknown'}",
            "the executors' logs have their positions and, with onError=dead-letter, the dead-letter topic has the "
            "records: fix the query or what writes them.",
        )


def lagging(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.is_lagging:
        return
    rate, lag_rows = evidence.query.windows["10s"].rows_in_per_s, evidence.query.lag_rows or 0
    if rate:
        yield warning(
            "TAILRACE_LAGGING",
            f"{lag_rows:,} rows behind the source",
            f"it reads {rate:,.0f} rows/s, which is {lag_rows / rate:.1f} s of work; a record waits "
            f"{milliseconds(evidence.get('source_queue', 'p50_ms'))} (p50) before it is read. While there is a "
            "backlog, latency is mostly this wait.",
            "wait if it is catching up after a start or a stop; else add partitions with cores for them, or make the "
            "slowest stage faster.",
        )
