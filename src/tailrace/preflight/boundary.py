"""What the end of an epoch costs, until it has been measured: nothing flows while progress is committed and the next
epoch is launched."""

from __future__ import annotations

# Rounded up from what benchmarks/check.py prints, on two cores with a warm JVM and a local disk: see docs/check.md.
STATELESS_GAP_MS, STATEFUL_GAP_MS = 200, 400


def estimated_gap_ms(*, stateful: bool) -> int:
    return STATEFUL_GAP_MS if stateful else STATELESS_GAP_MS
