"""The failures that are known: which of them a restart cures."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Any other error of Tailrace's is a refusal, and the same the next time.
CURABLE_CODES = frozenset(
    {
        "TAILRACE_BROKER_UNREACHABLE",
        "TAILRACE_DASHBOARD_NOT_STARTED",
        "TAILRACE_DEAD_LETTER_NOT_SENT",
        "TAILRACE_JARS_UNREACHABLE",
        "TAILRACE_OUTPUT_NOT_READABLE",
        "TAILRACE_OUTPUT_STILL_WRITTEN",
        "TAILRACE_BAD_RECORD",
        "TAILRACE_PORT_TAKEN",
        "TAILRACE_POSTGRESQL_UNREACHABLE",
        "TAILRACE_PYTHON_TIMEOUT",
        "TAILRACE_PYTHON_WORKER_LOST",
        "TAILRACE_RECORD_NOT_WRITTEN",
        "TAILRACE_REDIS_UNREACHABLE",
        "TAILRACE_REDIS_WENT_BACK",
        "TAILRACE_ROW_REJECTED",
        "TAILRACE_SPARK_NOT_STARTED",
    }
)

# These are, if what they could not reach may be there the next time.
CURABLE_AFTER_OUTAGE = frozenset(
    {"TAILRACE_CHECKPOINT_NOT_WRITABLE", "TAILRACE_SINK_SECRET_NOT_READABLE", "TAILRACE_SOURCE_REFUSED"}
)
OUTAGE = (
    r"TimeoutException|[Tt]imed out|Timeout expired|Connection (?:refused|reset)|DisconnectException|"
    r"NotLeaderOrFollower|No resolvable bootstrap|UnknownHostException|SocketException|Py4JNetworkError|Broken pipe"
)

# Exceptions of a user's function that tell of something outside, not of the record.
OUTAGES = r"Connect|Timeout|TimedOut|Unavailable|BrokenPipe|OperationalError|gaierror|URLError|MemoryError"
PROGRAM_ERRORS = frozenset(
    {"ImportError", "ModuleNotFoundError", "NameError", "SyntaxError", "IndentationError", "TabError"}
)


@dataclass(frozen=True)
class KnownFailure:
    code: str
    pattern: re.Pattern[str]
    fix: str
    curable: bool


def _incurable(code: str, pattern: str, fix: str) -> KnownFailure:
    return KnownFailure(code, re.compile(pattern, re.M), fix, curable=False)


def _curable(code: str, pattern: str, fix: str) -> KnownFailure:
    return KnownFailure(code, re.compile(pattern, re.M), fix, curable=True)


# Repetitions are bounded: the texts quote records, and a search must not take longer than in proportion to them.
# The first that fits. Those that no restart cures come first: a lost broker is often mentioned with the real cause.
KNOWN_FAILURES = (
    _incurable(
        "PROGRAM_ERROR",
        rf"^(?:{'|'.join(sorted(PROGRAM_ERRORS))})\b",
        "correct the script, or install what it imports.",
    ),
    _incurable(
        "NOT_AUTHORIZED",
        r"AuthenticationException|AuthorizationException|[Aa]uthentication failed|Not authorized to",
        "give the application the credentials and rights that the broker or the store wants.",
    ),
    _incurable(
        "TOPIC_MISSING",
        r"UnknownTopicOrPartition|does not host this topic-partition",
        "create the topic, or correct its name.",
    ),
    _incurable(
        "DATA_LOSS",
        r"KAFKA_DATA_LOSS|data may have been lost|OffsetOutOfRange",
        "Kafka has deleted the next records to read: start with a new checkpoint, or set failOnDataLoss to false to "
        "skip them.",
    ),
    _incurable(
        "CHECKPOINT_INCOMPATIBLE",
        r"SCHEMA_NOT_COMPATIBLE|STATE_STORE_\w{0,64}(?:MISMATCH|INCOMPATIBLE)|sources? in the checkpoint|"
        r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH|CHECKPOINT_\w{0,64}(?:MISMATCH|INCOMPATIBLE)|UNSUPPORTED_LOG_VERSION",
        "go back to the query that wrote the checkpoint, or use another checkpoint location.",
    ),
    _incurable(
        "CHECKPOINT_IN_USE",
        r"CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming jobs detected",
        "another process runs a query with this checkpoint: end one of them.",
    ),
    _incurable(
        "REFUSED_BY_SPARK",
        r"^(?:pyspark\.errors\.exceptions\.\w+\.)?(?:AnalysisException|ParseException|IllegalArgumentException)\b",
        "correct the query: Spark refuses it.",
    ),
    _incurable(
        "CANNOT_START",
        r"^Error: |SparkSubmit\.error\(|Could not parse Master URL|"
        r"ClassNotFoundException|NoClassDefFoundError|UnsupportedClassVersionError",
        "correct the arguments for spark-submit, or bring the jars that are missing.",
    ),
    _curable(
        "OUT_OF_MEMORY", r"OutOfMemoryError|\bMemoryError\b", "give it more memory: --driver-memory, --executor-memory."
    ),
    _curable(
        "TOO_FEW_SLOTS_LEFT",
        r"CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT",
        "executors are missing. They may come back; if not, find out why they ended.",
    ),
    _curable(
        "EXECUTOR_LOST",
        r"ExecutorLostFailure|[Ee]xecutor \S+ (?:exited|lost)|heartbeat|FetchFailed",
        "find out why the executor ended; see its log.",
    ),
    _curable(
        "OUTAGE",
        OUTAGE,
        "make sure that the other side can be reached; it is retried.",
    ),
)
