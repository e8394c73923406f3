"""The option `--kafka-config`, which every command has that talks to a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

KafkaConfig = Annotated[
    Path | None,
    typer.Option(
        "--kafka-config",
        metavar="FILE",
        help="Client properties of a secured cluster, as Kafka's own tools take them.",
        show_default=False,
    ),
]
