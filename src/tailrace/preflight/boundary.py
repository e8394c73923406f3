"""What the end of an epoch costs, until it has been measured: nothing flows while progress is committed and the next
epoch is launched."""

from __future__ import annotations

# On two cores, with a warm JVM and a local disk; docs/check.md says how they were measured.
STATELESS_GAP_MS, STATEFUL_GAP_MS = 250, 700


def estimated_gap_ms(*, stateful: bool) -> int:
    return STATEFUL_GAP_MS if stateful else STATELESS_GAP_MS
