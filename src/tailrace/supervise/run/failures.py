"""What ended an application, and whether a restart can cure it: from what it said and its exit code, nothing else."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tailrace.contract.run_status import RecordRange
from tailrace.errors import TailraceError
from tailrace.supervise.run.known_failures import (
    CURABLE_AFTER_OUTAGE,
    CURABLE_CODES,
    KNOWN_FAILURES,
    OUTAGE,
    OUTAGES,
    PROGRAM_ERRORS,
)

LONGEST_LINE = 600
LONGEST_ERROR = 200_000


class Cure(StrEnum):
    RESTART = "restart"
    """It may well run the next time."""
    ONCE = "restart once"
    """It may, but if the same record fails again, that record is the cause."""
    NONE = "none"
    """It fails again however often it is started."""


@dataclass(frozen=True)
class Failure:
    code: str
    """Of Tailrace or of Spark, or a word for what has none."""
    problem: str
    fix: str
    cure: Cure
    records: tuple[RecordRange, ...] = ()
    query: str | None = None
    """Its name, or its id if it has none."""
    run_id: str | None = None

    def has_record_of(self, before: Failure | None) -> bool:
        """Whether the same record is to blame for both; not if something else was, whatever was being worked on."""
        if before is None or {self.cure, before.cure} != {Cure.ONCE}:
            return False
        return any(one.overlaps(other) for one in self.records for other in before.records)


def diagnose(said: str, exit_code: int) -> Failure:
    """`said` is the error that ended the application, or the end of what it printed."""
    error = final_error_in(said[-LONGEST_ERROR:])
    query, run_id = _query_in(error)
    records = tuple(_records_in(error))

    def failure(code: str, problem: str, fix: str, cure: Cure) -> Failure:
        return Failure(code, problem[:LONGEST_LINE], fix, cure, records, query, run_id)

    if exit_code > 128:
        return failure(
            "KILLED", f"a process of the application was ended by {_signal(exit_code)}.", _IF_KILLED, Cure.RESTART
        )
    if (ours := TailraceError.find_in(error)) is not None:
        codes = set(re.findall(r"\[(TAILRACE_[A-Z_]+)\]", error)) | set(re.findall(r"^TAILRACE_[A-Z_]+", error, re.M))
        curable = CURABLE_CODES | (CURABLE_AFTER_OUTAGE if re.search(OUTAGE, error) else set())
        can_be_cured = codes - {"TAILRACE_CHECK_FAILED"} <= curable
        cure = Cure.NONE if not can_be_cured else Cure.ONCE if records else Cure.RESTART
        return failure(ours.code, ours.problem, ours.fix, cure)
    if "[PYTHON_EXCEPTION]" in error:
        return _of_python_function(error, records, query, run_id)
    # Behind it is the query's plan, with the user's own words in it.
    message = error.partition("\n=== Streaming Query")[0]
    for known in KNOWN_FAILURES:
        if (found := known.pattern.search(message)) is not None:
            cure = Cure.RESTART if known.curable else Cure.NONE
            return failure(_condition_in(message) or known.code, _line_with(message, found.start()), known.fix, cure)
    last = _first_line(error) or f"it ended with exit code {exit_code}."
    return failure(_condition_in(error) or "UNKNOWN", last, "read its log.", Cure.RESTART)


def final_error_in(said: str) -> str:
    """From the last traceback on, without its lines of code; a script with a wrong syntax has none."""
    begin = max((found.start() for found in re.finditer(r"^Traceback \(most recent", said, re.M)), default=None)
    if begin is not None:
        return re.sub(r"\A(?:Traceback.*\n|[ \t].*\n)+", "", said[begin:])
    thrown = re.compile(r'^(?:Exception in thread "main"|Error: |\w*(?:Syntax|Indentation|Tab)Error: |\[\w+\] )', re.M)
    return said[found.start() :] if (found := thrown.search(said)) else ""


def _of_python_function(error: str, records: tuple[RecordRange, ...], query: str | None, run_id: str | None) -> Failure:
    """An exception in the user's function, with the last line of its traceback."""
    inner = error.partition("\n=== Streaming Query")[0]
    lines = re.findall(r"^(([A-Za-z_][\w.]*)(?::.*)?)$", inner.partition("Traceback")[2], re.M)
    thrown, kind = (lines[-1][0][:LONGEST_LINE], lines[-1][1].rpartition(".")[2]) if lines else ("an exception", "")
    if re.search(OUTAGES, kind):
        fix = "make sure that what the function needs can be reached; it is retried."
        return Failure("PYTHON_EXCEPTION", thrown, fix, Cure.RESTART, records, query, run_id)
    if kind in PROGRAM_ERRORS:
        fix = "install what is missing where the executors run, or correct the function."
        return Failure("PYTHON_EXCEPTION", thrown, fix, Cure.NONE, records, query, run_id)
    fix = "make the function handle this record, or set onError to dead-letter or drop it; the log has the traceback."
    return Failure("PYTHON_EXCEPTION", thrown, fix, Cure.ONCE if records else Cure.RESTART, records, query, run_id)


def _records_in(error: str) -> Iterator[RecordRange]:
    for topic, partition, first, last in re.findall(
        r"topic '([^']{1,249})', partition ([0-9]{1,10}), offsets? ([0-9]{1,19})(?: to ([0-9]{1,19}))?", error
    ):
        yield RecordRange(topic, int(partition), int(first), int(last or first))


def _query_in(error: str) -> tuple[str | None, str | None]:
    found = re.search(r"Query (?:(\S+) )?\[id = ([0-9a-f-]+), runId = ([0-9a-f-]+)\]", error)
    named = re.search(r"^Identifier: (?:(.+) )?\[id = ", error, re.M)
    if found is None:
        return None, None
    return (named[1] if named and named[1] else found[1]) or found[2], found[3]


def _condition_in(error: str) -> str | None:
    """Spark's own name for it; the outermost only says that a stream has failed."""
    names = re.findall(r"\[([A-Z][A-Z0-9_.]{5,})\]", error)
    return next((name for name in names if name != "STREAM_FAILED"), None)


def _line_with(error: str, position: int) -> str:
    begin = error.rfind("\n", 0, position) + 1
    return error[begin:].partition("\n")[0].strip()


def _first_line(error: str) -> str:
    return next((line.strip() for line in error.splitlines() if line.strip()), "")


def _signal(exit_code: int) -> str:
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return f"signal {exit_code - 128}"


_IF_KILLED = "if this was not intended, look for what ran out of memory, and for who else can end processes here."
