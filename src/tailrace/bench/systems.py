"""The systems: how each is run, what it promises, how it is tuned, and what it cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NEEDS_PYTHON = ("python-per-record", "keyed-state", "rtm-state")
NEEDS_STATE = ("keyed-aggregate", "keyed-state", "stream-join", "vendor-b", "rtm-dedup", "rtm-window", "rtm-state")


def _all_of(workloads: tuple[str, ...], reason: str) -> dict[str, str]:
    return dict.fromkeys(workloads, reason)


@dataclass(frozen=True)
class System:
    name: str
    title: str
    runtime: str
    """The name of its files in `jobs`."""
    guarantee: str
    settings: tuple[str, ...]
    """How it is tuned, to be read in the report."""
    packages: tuple[str, ...] = ()
    """What is installed into an environment of its own; without any, it runs in the user's."""
    jars: str | None = None
    """The set of jars it is given: `spark` or `flink`."""
    checkpoints: str | None = None
    """The files that its checkpoints leave, below its folder."""
    checkpoint_line: str | None = None
    """What it logs for each checkpoint."""
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Workloads that it cannot run, and why."""

    @property
    def is_peer(self) -> bool:
        return bool(self.packages)


_SPARK_STATE = "state: RocksDB with changelog"
_SPARK_SLOTS = "local master, a task slot for each task and one to spare, 2 GiB heap"
_AT_LEAST_ONCE = "at least once; state exactly once"

TAILRACE = System(
    "tailrace",
    "Tailrace",
    "spark",
    _AT_LEAST_ONCE,
    (
        "trigger(realTime=<checkpoint>)",
        "tailrace.configure with its defaults",
        'sink "kafka"',
        _SPARK_STATE,
        _SPARK_SLOTS,
    ),
    checkpoints="checkpoint/commits/*",
)
REAL_TIME = System(
    "real-time",
    "Spark Real-Time Mode",
    "spark",
    _AT_LEAST_ONCE,
    ("trigger(realTime=<checkpoint>)", "Spark's defaults", _SPARK_STATE, _SPARK_SLOTS),
    jars="spark",
    checkpoints="checkpoint/commits/*",
    cannot={
        **_all_of(("python-per-record",), "Spark's Real-Time Mode refuses Python functions"),
        **_all_of(("keyed-state", "rtm-state"), "Spark's Real-Time Mode refuses transformWithState in Python"),
        "stream-join": "Spark's Real-Time Mode refuses joins of two streams",
    },
)
MICRO_BATCH = System(
    "micro-batch",
    "Spark micro-batch",
    "spark",
    _AT_LEAST_ONCE,
    (
        "no trigger: a batch begins when the one before has ended",
        "without state: asynchronous progress tracking, a commit every <checkpoint>; with state: every batch commits",
        _SPARK_STATE,
        _SPARK_SLOTS,
    ),
    jars="spark",
)
LOOP = System(
    "loop",
    "bare loop",
    "loop",
    "at least once; no state",
    (
        "confluent-kafka: poll, produce, commit every <checkpoint>",
        "fetch.wait.max.ms=5",
        "session.timeout.ms=6000",
        "linger.ms=0",
        "idempotent producer",
    ),
    cannot=_all_of(NEEDS_STATE, "it keeps no state: it is the floor for the others"),
)
_FLINK_PACKAGES = ("apache-flink==2.3.0",)
_FLINK_SETTINGS = (
    "one JVM (mini cluster), parallelism = partitions",
    "execution.buffer-timeout.interval=0",
    "pipeline.object-reuse=true",
    "state: RocksDB, incremental checkpoints every <checkpoint>",
    "linger.ms=0",
)
FLINK = System(
    "flink",
    "Flink",
    "flink",
    _AT_LEAST_ONCE,
    ("Flink's own operators, in SQL through PyFlink: no Java build", *_FLINK_SETTINGS, "mini-batch off"),
    packages=_FLINK_PACKAGES,
    jars="flink",
    checkpoints="checkpoints/*/chk-*/_metadata",
    cannot={
        "python-per-record": "it is about Python code: see PyFlink",
        **_all_of(("keyed-state", "rtm-state"), "it is about state in Python code: see PyFlink"),
        "vendor-c": "Flink's SQL has no broadcast join of a stream with a table: see PyFlink",
    },
)
PYFLINK = System(
    "pyflink",
    "PyFlink",
    "pyflink",
    _AT_LEAST_ONCE,
    ("DataStream API, every function in Python", "python.execution-mode=thread", *_FLINK_SETTINGS),
    packages=_FLINK_PACKAGES,
    jars="flink",
    checkpoints="checkpoints/*/chk-*/_metadata",
)
QUIX = System(
    "quix",
    "Quix Streams",
    "quix",
    "at least once; state may repeat after a failure",
    (
        "one process",
        "commit_interval=<checkpoint>",
        "state: RocksDB with changelog topics",
        "fetch.wait.max.ms=5",
        "session.timeout.ms=6000",
        "linger.ms=0",
    ),
    packages=("quixstreams==3.28.1",),
    checkpoint_line="Committed a checkpoint",
    cannot={"keyed-state": "Quix Streams has no timers by key"},
)
BYTEWAX = System(
    "bytewax",
    "Bytewax",
    "bytewax",
    _AT_LEAST_ONCE,
    (
        "one worker: workers are threads that share the interpreter",
        "epoch_interval=<checkpoint>, snapshots into its recovery store (SQLite)",
        "fetch.wait.max.ms=5",
        "linger.ms=0; its sink waits for the acknowledgement of each batch",
    ),
    packages=("bytewax==0.21.1", "confluent-kafka>=2.6"),
)
_ALL = (TAILRACE, REAL_TIME, MICRO_BATCH, FLINK, PYFLINK, QUIX, BYTEWAX, LOOP)
SYSTEMS = {system.name: system for system in _ALL}
OWN = tuple(system.name for system in _ALL if not system.is_peer)
