"""`start()` of a real-time query checks the query first, and waits for task slots that are about to be free.

Python users start queries through PySpark's writer, so the check is installed there, once per process. Queries that
are started in another way still meet the plugin's own checks.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace._spark.plugin import is_loaded
from tailrace.check.check import verdict_on
from tailrace.check.facts import facts_of, preflight_of
from tailrace.check.slot_wait import wait_for_slots
from tailrace.check.slots import remember
from tailrace.check.verdict import Verdict
from tailrace.contract.findings import Finding, Severity
from tailrace.errors import QueryRefusedError, TailraceError
from tailrace.supervise.run_folder import report_query

Start = Callable[..., StreamingQuery]
Interceptor = Callable[[DataStreamWriter], Any]

logger = logging.getLogger("tailrace.check")
_sparks_start: Start = DataStreamWriter.start
_sparks_to_table: Start = DataStreamWriter.toTable
_interceptor: Interceptor | None = None
_logged: set[Finding] = set()


def check_at_start() -> None:
    """Install the check. Idempotent."""
    DataStreamWriter.start = _with_check(_sparks_start)  # type: ignore[method-assign]
    DataStreamWriter.toTable = _with_check(_sparks_to_table)  # type: ignore[method-assign]


def intercept(interceptor: Interceptor | None) -> None:
    """Pass every writer that is started to `interceptor` instead; None ends that."""
    global _interceptor
    _interceptor = interceptor
    check_at_start()


def _with_check(sparks_own: Start) -> Start:
    signature = inspect.signature(sparks_own)

    @functools.wraps(sparks_own)
    def start(self: DataStreamWriter, *arguments: Any, **named: Any) -> StreamingQuery:
        # Apply the arguments as PySpark would, so the check sees them. The first one is the path or the table.
        bound = signature.bind(self, *arguments, **named)
        given = {name: value for name, value in bound.arguments.items() if value is not None}
        self.options(**given.get("options", {}))
        for setter in ("outputMode", "partitionBy", "format", "queryName"):
            if setter in given:
                getattr(self, setter)(given[setter])
        return _checked(self, lambda: sparks_own(self, *bound.args[1:2]))

    return start


def _checked(writer: DataStreamWriter, start: Callable[[], StreamingQuery]) -> StreamingQuery:
    if _interceptor is not None:
        return _interceptor(writer)  # type: ignore[no-any-return]
    verdict = _verdict_on(writer)
    if verdict is not None:
        verdict.raise_if_blocked()
        _log_once(verdict)
        wait_for_slots(writer._spark, verdict.shape.slots)
    try:
        query = start()
    except PySparkException as refused:
        raise _coded(refused) or refused from None
    report_query(query)
    if verdict is not None:
        remember(query, verdict.shape.slots)
    return query


def _coded(refused: PySparkException) -> TailraceError | None:
    """The error that the plugin raised in the JVM, in a class that callers of `start()` catch."""
    coded = TailraceError.find_in(str(refused)) if isinstance(refused, IllegalArgumentException) else None
    if coded is None or isinstance(coded, IllegalArgumentException):
        return coded
    return QueryRefusedError(coded.code, coded.problem, coded.fix)


def _verdict_on(writer: DataStreamWriter) -> Verdict | None:
    """None for a query that is not real-time, or that could not be checked."""
    try:
        if not is_loaded(writer._spark.sparkContext) or not is_real_time(writer):
            return None
        return verdict_on(facts_of(writer, at_start=True), writer._spark)
    except TailraceError:
        raise
    except Exception:
        # A failure of the check itself must not prevent a start; the plugin's own checks still follow.
        logger.warning("This query could not be checked before it was started.", exc_info=True)
        return None


def is_real_time(writer: DataStreamWriter) -> bool:
    return bool(preflight_of(writer._spark).isRealTime(writer._jwrite))


def _log_once(verdict: Verdict) -> None:
    for severity, level in ((Severity.WARNING, logging.WARNING), (Severity.NOTE, logging.INFO)):
        for finding in verdict.of(severity):
            if finding not in _logged:
                _logged.add(finding)
                fix = f" Fix: {finding.fix}" if finding.fix else ""
                logger.log(level, "[%s] %s: %s%s", finding.code, finding.heading, finding.detail, fix)
