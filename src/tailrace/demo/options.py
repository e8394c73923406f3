"""The options of a demo, and its result."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path

from tailrace._kafka.cluster import Servers
from tailrace.contract.snapshot import BoundaryPause
from tailrace.loadtest import LatencyReport

SHORTEST_EPOCH_S = 5


class SinkName(StrEnum):
    KAFKA = "kafka"
    POSTGRESQL = "postgresql"
    REDIS = "redis"


class Mode(StrEnum):
    MICRO_BATCH = "micro-batch"
    REAL_TIME = "real-time"


@dataclasses.dataclass(frozen=True)
class DemoOptions:
    seconds: int
    rate: int
    modes: tuple[Mode, ...]
    sink: SinkName = SinkName.KAFKA
    cluster: Servers | None = None
    checkpoint_location: Path | None = None
    keep: bool = False

    @property
    def epoch_s(self) -> int:
        """Half the measured time, so every measurement spans two epoch boundaries."""
        return max(SHORTEST_EPOCH_S, self.seconds // 2)

    def seconds_of(self, mode: Mode) -> int:
        """Micro-batch has no epochs to span: half a minute shows its curve."""
        return self.seconds if mode is Mode.REAL_TIME else min(30, self.seconds)


@dataclasses.dataclass(frozen=True)
class DemoResult:
    options: DemoOptions
    reports: dict[Mode, LatencyReport]
    spark_log: Path
    pause: BoundaryPause | None = None
    """The pause between epochs during the measurement; see `tailrace.monitor.epochs`."""
    cold_pauses_ms: tuple[float, ...] = ()
    """The first pauses between epochs, before the JVM had compiled their code."""
