"""How long an epoch is."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tailrace.check.boundary_estimate import estimated_pause_ms
from tailrace.check.facts import Facts
from tailrace.check.formatting import duration_in_words
from tailrace.check.overlap import overlaps
from tailrace.contract.findings import Finding, blocking, warning

TOLERATED_SHARE = 0.02


def below_minimum(facts: Facts) -> Iterator[Finding]:
    minimum = facts.described.shortest_epoch_ms
    if facts.epoch_ms < minimum:
        yield blocking(
            "TAILRACE_EPOCH_TOO_SHORT",
            "trigger",
            f"an epoch of {duration_in_words(facts.epoch_ms)} is shorter than the shortest that Spark allows, "
            f"{duration_in_words(minimum)}.",
            f'.trigger(realTime="{duration_in_words(_enough_ms(facts))}"): rows do not wait for it; it only sets how '
            "often progress is committed.",
        )


def boundaries(facts: Facts) -> Iterator[Finding]:
    if overlaps(facts):
        return
    pause_ms = estimated_pause_ms(stateful=facts.stateful)
    share = pause_ms / facts.epoch_ms
    if share > TOLERATED_SHARE:
        yield warning(
            "TAILRACE_SHORT_EPOCHS",
            "trigger",
            f"at each epoch boundary nothing flows for about {pause_ms} ms (an estimate for a "
            f"{'stateful' if facts.stateful else 'stateless'} query); of {duration_in_words(facts.epoch_ms)} that is "
            f"{share:.1%}, so the boundaries determine p{_percentile(share)} and everything above it.",
            f'.trigger(realTime="{duration_in_words(_enough_ms(facts))}") keeps them out of p99. A shorter epoch only '
            "reduces what is replayed after a failure.",
        )


def _enough_ms(facts: Facts) -> int:
    """The shortest round epoch that Spark allows and whose boundaries stay below one percent."""
    seconds = math.ceil(estimated_pause_ms(stateful=facts.stateful) / 10)
    enough_ms = next(round_s for round_s in (10, 30, 60, 120, 300) if round_s >= seconds) * 1000
    return int(max(enough_ms, facts.described.shortest_epoch_ms))


def _percentile(share: float) -> int:
    return math.floor(100 * (1 - share))
