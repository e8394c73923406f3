"""The estimated pause at an epoch boundary, until it is measured: nothing flows while progress is committed and the
next epoch is launched."""

from __future__ import annotations

# Double what benchmarks/epoch_boundary.py prints on two cores with a warm JVM and a local disk: other machines differ.
STATELESS_PAUSE_MS, STATEFUL_PAUSE_MS = 200, 400


def estimated_pause_ms(*, stateful: bool) -> int:
    return STATEFUL_PAUSE_MS if stateful else STATELESS_PAUSE_MS
