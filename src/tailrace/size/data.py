"""A sizing as data, for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailrace.size.sizing import Sizing


def dict_of(size: Sizing) -> dict[str, Any]:
    load = size.load
    return {
        "slots": size.slots,
        "arithmetic": size.arithmetic,
        "stages": [
            {"stage": stage.number, "slots": stage.tasks, "stateful": stage.stateful, "sources": [*stage.sources]}
            for stage in size.shape.stages
        ],
        "executors": size.executors,
        "cores_per_executor": load.cores_per_executor,
        "cores": size.cores,
        "cores_is_upper_bound": size.busy_cores is None,
        "cores_rule": size.cores_rule,
        "busy_cores": size.busy_cores,
        "rows_per_s": load.rows_per_s,
        "throughput_rows_per_s": size.throughput_rows_per_s,
        "throughput_is_lower_bound": size.throughput_is_lower_bound,
        "utilization": size.utilization,
        "target_utilization": load.utilization,
        "executor_memory_bytes": size.executor_memory_bytes,
        "executor_overhead_bytes": size.executor_overhead_bytes,
        "keys": load.keys,
        "state_bytes_per_key": size.state_bytes_per_key,
        "state_bytes": size.state_bytes,
        "state_disk_bytes": size.state_disk_bytes,
        "boundary_ms": size.boundary_ms,
        "boundary_is_estimate": load.boundary_ms is None,
        "boundary_parts_ms": dict(load.boundary_parts_ms) if load.boundary_parts_ms else None,
        "max_recovery_s": load.max_recovery_s,
        "intervals": [interval.to_dict() for interval in size.intervals],
        "recommended_interval_s": size.recommended.interval_s if size.recommended else None,
        "recommendation": size.recommendation,
        "findings": [finding.to_dict() for finding in size.findings],
    }
