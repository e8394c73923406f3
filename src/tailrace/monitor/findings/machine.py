"""What holds up every thread of an executor."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.contract.findings import Finding
from tailrace.monitor.findings.evidence import MAIN_PART, NOTABLE_MS, STALL_MS, Evidence, warning_if
from tailrace.monitor.wording import counted, milliseconds

FULL_CPU = 0.9


def garbage_collection(evidence: Evidence) -> Iterator[Finding]:
    tail = evidence.get("end_to_end", "p999_ms")
    for executor in evidence.executors:
        longest = executor.gc_max_ms
        if longest >= NOTABLE_MS and longest >= MAIN_PART * tail:
            yield Finding(
                "TAILRACE_GC_PAUSES",
                warning_if(longest >= STALL_MS),
                f"Garbage collection stops executor {executor.id} for up to {milliseconds(longest)}",
                f"{counted(executor.gc_pauses, 'pause')} in the last minute, "
                f"{milliseconds(executor.gc_total_ms)} together; the query's p99.9 is {milliseconds(tail)}.",
                "give the JVM more memory (spark.driver.memory on a local master, else spark.executor.memory), or "
                "another collector.",
            )


def too_few_cores(evidence: Evidence) -> Iterator[Finding]:
    for executor in evidence.executors:
        late, load = executor.hiccup_p99_ms or 0.0, executor.cpu_load or 0.0
        if load >= FULL_CPU and late >= NOTABLE_MS / 2:
            yield Finding(
                "TAILRACE_TOO_FEW_CORES",
                warning_if(late >= MAIN_PART * evidence.get("end_to_end", "p99_ms")),
                f"Threads of executor {executor.id} wait for a core",
                f"the machine's CPUs are {load:.0%} busy; a thread that is due runs up to {milliseconds(late)} late "
                f"(p99), {milliseconds(executor.hiccup_max_ms or 0.0)} at most.",
                "give the executors more cores, or move other programs off the machine; task slots beyond the number "
                "of cores do not help.",
            )
