"""The memory of an executor, estimated from what Spark and RocksDB use by default."""

from __future__ import annotations

from tailrace.size.rounding import round_up

MIB, GIB = 2**20, 2**30

STATE_BYTES_PER_KEY = 100.0
# Real-Time Mode keeps state in RocksDB: older values of a key wait for compaction, and there are indexes and filters.
STATE_OVERHEAD = 2.0
# RocksDB's own default for a write buffer, and Spark's for a block cache: each task with state has both.
STATE_TASK_BYTES = (64 + 8) * MIB
# The parts of the heap: what Spark itself needs, and the buffers of a task's consumer or shuffle.
BASE_BYTES, TASK_BYTES = GIB, 64 * MIB
# Spark's default for the memory outside the heap (spark.executor.memoryOverhead).
LEAST_OVERHEAD_BYTES, OVERHEAD_SHARE = 384 * MIB, 0.1


def heap_bytes(*, tasks: int) -> int:
    """In whole GiB."""
    return round_up((BASE_BYTES + tasks * TASK_BYTES) / GIB) * GIB


def overhead_bytes(*, heap: int, state: float) -> int:
    """Spark's default with the state on top, in whole MiB."""
    default = max(LEAST_OVERHEAD_BYTES, heap * OVERHEAD_SHARE)
    return round_up((default + state) / MIB) * MIB
