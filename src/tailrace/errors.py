"""Errors with a code, the problem, and the change that fixes it.

Every error of Tailrace is a `TailraceError`. Its `code` is stable and listed in docs/reference/errors.md. Catch a
subclass to handle one situation:

| class | when |
|---|---|
| `ConfigurationError` | an argument, a setting or the session is wrong; the same call fails again |
| `InstallationError` | Java, a jar or a package is missing, or two versions differ |
| `QueryRefusedError` | `start()` refuses the query: it cannot run in Real-Time Mode as it is |
| `NotReadyError` | too early; the same call can succeed later |
| `BrokerError` | a Kafka broker does not start, does not answer, or refuses a topic |
| `PortTakenError` | another program uses the port |
| `DrainError` | a query could not be drained |
| `NothingToDrainError` | there is no real-time query to drain (a `DrainError`) |
| `DashboardUnreachableError` | no dashboard answers at that address |

`TailraceError(code, problem, fix)` creates the class that belongs to the code, as `OSError` does with its number.

All of them are a `PySparkException`. A `QueryRefusedError` is also an `AnalysisException` and an
`IllegalArgumentException`, because Spark refuses queries with these two; a `ConfigurationError` is an
`IllegalArgumentException`.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

__all__ = [
    "BrokerError",
    "ConfigurationError",
    "DashboardUnreachableError",
    "DrainError",
    "InstallationError",
    "NotReadyError",
    "NothingToDrainError",
    "PortTakenError",
    "QueryRefusedError",
    "TailraceError",
]

_CODE = re.compile(r"\[(TAILRACE_[A-Z_]+)\] ")
_FIX = "\nFix: "
# What Spark appends to a message: its SQL state, the query's plan, a stack trace.
_END = re.compile(r" SQLSTATE: |\n=== Streaming Query|\n\s{0,32}at |\n\n?JVM stacktrace")


class TailraceError(PySparkException):
    """A problem in the user's terms, with the change that fixes it.

    `code` is stable and documented in docs/reference/errors.md. The wording of `problem` and `fix` may improve between
    releases.
    """

    codes: ClassVar[frozenset[str]] = frozenset()
    sql_state: ClassVar[str | None] = None
    _class_of: ClassVar[dict[str, type[TailraceError]]] = {}

    def __init_subclass__(cls) -> None:
        TailraceError._class_of.update(dict.fromkeys(cls.codes, cls))

    def __new__(cls, code: str, *_texts: Any, **_named: Any) -> TailraceError:
        return super().__new__(TailraceError._class_of.get(code, cls) if cls is TailraceError else cls)

    def __init__(self, code: str, problem: str, fix: str) -> None:
        super().__init__(
            message=f"{problem}\nFix: {fix}", errorClass=code, messageParameters={"problem": problem, "fix": fix}
        )
        self.args = code, problem, fix
        self.code = code
        self.problem = problem
        self.fix = fix
        # Spark's errors from the JVM have it, and programs read it.
        self._desc = str(self)

    def __reduce__(self) -> tuple[type[TailraceError], tuple[str, str, str]]:
        return type(self), (self.code, self.problem, self.fix)

    def getSqlState(self) -> str | None:
        """Return the SQLSTATE of the class, as PySpark's exceptions do; None if it has none."""
        return self.sql_state

    def getBreakingChangeInfo(self) -> None:
        """Return None: only Spark's own errors have it."""

    @classmethod
    def find_in(cls, text: str) -> TailraceError | None:
        """Return the coded error inside a longer text, such as a JVM stack trace; None if there is none."""
        # In steps, not with one pattern: its time would grow with the square of a text that repeats a code.
        code = _CODE.search(text)
        problem, found, rest = text[code.end() :].partition(_FIX) if code else ("", "", "")
        if code is None or not found:
            return None
        end = _END.search(rest)
        return TailraceError(code[1], problem.strip(), rest[: end.start() if end else None].strip())


class ConfigurationError(TailraceError, IllegalArgumentException):
    """An argument, a setting or the session is wrong. The same call fails again until that is changed."""

    codes = frozenset(
        {
            "TAILRACE_BAD_ARGUMENT",
            "TAILRACE_BAD_DEDUPLICATION",
            "TAILRACE_BAD_ERROR_POLICY",
            "TAILRACE_BAD_KAFKA_CONFIG",
            "TAILRACE_BAD_SETTING",
            "TAILRACE_BAD_SINK_OPTION",
            "TAILRACE_BAD_SIZE",
            "TAILRACE_BAD_TEMPLATE",
            "TAILRACE_BAD_TOPIC",
            "TAILRACE_CONNECT_NOT_SUPPORTED",
            "TAILRACE_FOLDER_NOT_PRIVATE",
            "TAILRACE_HOST_UNKNOWN",
            "TAILRACE_NOTHING_TO_CHECK",
            "TAILRACE_NOT_CONFIGURED",
            "TAILRACE_NOT_SUPERVISED",
            "TAILRACE_SESSION_ALREADY_RUNNING",
            "TAILRACE_SESSION_NOT_CONFIGURED",
            "TAILRACE_TEST_MISUSED",
            "TAILRACE_UNKNOWN_FIGURE",
            "TAILRACE_UNKNOWN_FORMAT",
            "TAILRACE_UNKNOWN_SETTING",
            "TAILRACE_UNKNOWN_WINDOW",
            "TAILRACE_WORKLOAD_NOT_FOR_SINK",
        }
    )


class InstallationError(TailraceError):
    """Java, a jar or a package is missing, or two versions differ."""

    codes = frozenset(
        {
            "TAILRACE_DASHBOARD_NOT_INSTALLED",
            "TAILRACE_EXTRA_MISSING",
            "TAILRACE_JARS_UNREACHABLE",
            "TAILRACE_JAR_CHANGED",
            "TAILRACE_JAVA_MISSING",
            "TAILRACE_JAVA_TOO_OLD",
            "TAILRACE_NO_EMBEDDED_POSTGRES",
            "TAILRACE_NO_EMBEDDED_REDIS",
            "TAILRACE_NO_POSTGRESQL_DRIVER",
            "TAILRACE_NO_REDIS_CLIENT",
            "TAILRACE_PLUGIN_MISSING",
            "TAILRACE_SPARK_VERSION_MISMATCH",
            "TAILRACE_VERSION_MISMATCH",
        }
    )


class QueryRefusedError(TailraceError, AnalysisException, IllegalArgumentException):
    """`start()` refuses the query: it cannot run in Real-Time Mode as it is.

    The code is that of the finding, or `TAILRACE_CHECK_FAILED` if there are several. `tailrace.check` lists them all.
    """

    sql_state = "0A000"  # a feature is not supported, as in Spark's own refusals

    codes = frozenset(
        {
            "TAILRACE_CHECK_FAILED",
            "TAILRACE_NOT_DETERMINISTIC",
            "TAILRACE_NO_ROW_IDENTITY",
            "TAILRACE_POSTGRESQL_REFUSED",
            "TAILRACE_REDIS_CLUSTER",
            "TAILRACE_REDIS_EVICTS",
            "TAILRACE_REDIS_REFUSED",
            "TAILRACE_REDIS_TOO_OLD",
            "TAILRACE_SINK_COLUMN_MISSING",
            "TAILRACE_SINK_COLUMN_REQUIRED",
            "TAILRACE_SINK_COLUMN_TYPE",
            "TAILRACE_SINK_KEY_NOT_UNIQUE",
            "TAILRACE_SINK_NEEDS_REAL_TIME",
            "TAILRACE_SINK_RIGHTS_MISSING",
            "TAILRACE_SINK_TABLE_MISSING",
            "TAILRACE_STATE_BEFORE_UNION",
            "TAILRACE_STATUS_WITHOUT_SESSION",
            "TAILRACE_UNSUPPORTED_OPERATOR",
            "TAILRACE_UNSUPPORTED_SINK",
        }
    )


class NotReadyError(TailraceError):
    """Too early: the same call can succeed later."""

    codes = frozenset(
        {
            "TAILRACE_NO_FIGURES",
            "TAILRACE_POSTGRESQL_UNREACHABLE",
            "TAILRACE_REDIS_UNREACHABLE",
            "TAILRACE_SLOTS_NOT_RELEASED",
        }
    )


class BrokerError(TailraceError):
    """A Kafka broker does not start, does not answer, lets this user not in, or refuses a topic."""

    codes = frozenset(
        {
            "TAILRACE_BROKER_ALREADY_RUNNING",
            "TAILRACE_BROKER_NOT_STARTED",
            "TAILRACE_BROKER_UNREACHABLE",
            "TAILRACE_KAFKA_ACL_MISSING",
            "TAILRACE_KAFKA_CERTIFICATE_EXPIRED",
            "TAILRACE_KAFKA_CERTIFICATE_UNTRUSTED",
            "TAILRACE_KAFKA_LOGIN_REFUSED",
            "TAILRACE_KAFKA_TLS_FAILED",
            "TAILRACE_TOPIC_NOT_CREATED",
        }
    )


class PortTakenError(TailraceError):
    """Another program uses the port."""

    codes = frozenset({"TAILRACE_PORT_TAKEN"})


class DrainError(TailraceError):
    """A query could not be drained."""

    codes = frozenset({"TAILRACE_DRAIN_FAILED", "TAILRACE_DRAIN_TIMEOUT"})


class NothingToDrainError(DrainError):
    """There is no real-time query to drain."""

    codes = frozenset({"TAILRACE_NOTHING_TO_DRAIN"})


class DashboardUnreachableError(TailraceError):
    """No dashboard answers at that address."""

    codes = frozenset({"TAILRACE_DASHBOARD_UNREACHABLE"})
