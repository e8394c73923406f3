"""What a run of chaos is asked to do."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Any

from tailrace._kafka.cluster import Servers
from tailrace.chaos.delivery import Promise
from tailrace.chaos.records import key_of
from tailrace.chaos.workloads import USUAL, queries_of
from tailrace.errors import TailraceError

YOURS = "yours"


@dataclass(frozen=True)
class UsersQuery:
    """A script that runs a query of the user's from a checkpoint, between topics of the user's."""

    script: Path
    arguments: tuple[str, ...]
    cluster: Servers
    input_topic: str
    output_topic: str
    id_field: str = "id"
    template: str = '{"id": $id, "key": "$key"}'
    exactly_once: bool = False
    reference: bool = True
    """Whether values, order and last records are compared with two more runs, in micro-batch and without a fault."""

    def encode(self, number: int) -> tuple[str, bytes]:
        key = key_of(number)
        return key, Template(self.template).substitute(id=number, key=key).encode()

    def require_readable_template(self) -> None:
        try:
            said = json.loads(self.encode(4711)[1])[self.id_field]
            if int(said) == 4711:
                return
        except (ValueError, KeyError, TypeError):
            pass
        raise TailraceError(
            "TAILRACE_BAD_TEMPLATE",
            f"records made from '{self.template}' do not have their number in the JSON field '{self.id_field}'.",
            """name the field with --id-field, and write --record '{"id": $id, "card": "$key", "amount": 10}'.""",
        )


@dataclass(frozen=True)
class ChaosOptions:
    rounds: int = 20
    piece: int = 20
    """The output is compared with the input after this many rounds; the next ones get fresh topics."""
    seconds: float | None = None
    """No further round begins after so long."""
    seed: int = 7
    workloads: tuple[str, ...] = USUAL
    sinks: tuple[str, ...] = ("kafka",)
    faults: tuple[str, ...] = ()
    """Only these; all if none is named."""
    rate: int = 100
    epoch_s: int | None = None
    """If not given, short ones, and in every other turn of several pieces long ones."""
    patience_s: float = 60
    """When the load has ended, rows are given up if none has come for so long."""
    yours: UsersQuery | None = None

    @property
    def queries(self) -> tuple[str, ...]:
        """Named "workload/sink"."""
        if self.yours is not None:
            return (YOURS,)
        return tuple(
            query for sink in self.sinks for workload in self.workloads for query in queries_of(workload, sink)
        )

    def promise_of(self, query: str) -> Promise:
        if self.yours is not None:
            return Promise.EXACTLY_ONCE if self.yours.exactly_once else Promise.AT_LEAST_ONCE
        return Promise.of(query)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"yours": None}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> ChaosOptions:
        made: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in fields.items()}
        return cls(**made)
