"""`tailrace doctor`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailrace._process.console import SafeConsole
from tailrace.check.machine import DoctorOptions, Requirement, examine
from tailrace.cli.kafka_config import KafkaConfig


def doctor(
    master: Annotated[str, typer.Option(help="The Spark master to try.")] = "local[*]",
    bootstrap_servers: Annotated[str | None, typer.Option(help="A Kafka cluster that must be reachable.")] = None,
    kafka_config: KafkaConfig = None,
    checkpoint_location: Annotated[Path | None, typer.Option(help="A folder that must be writable.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Check whether this machine is ready for real-time queries, and show the fix for each problem."""
    output = SafeConsole(highlight=False)

    def show(requirement: Requirement) -> None:
        sign = "[green]✓[/]" if requirement.ok else "[red]✗[/]"
        output.print(f"{sign} {requirement.name}: {escape(requirement.detail)}", soft_wrap=True)
        if requirement.fix:
            output.print(f"  [bold]{'Hint' if requirement.ok else 'Fix'}:[/] {escape(requirement.fix)}", soft_wrap=True)

    options = DoctorOptions(master, bootstrap_servers, checkpoint_location, kafka_config)
    requirements = examine(options, show if not as_json else lambda _: None)
    healthy = all(one.ok for one in requirements)
    if as_json:
        print(json.dumps({"healthy": healthy, "requirements": [one.to_dict() for one in requirements]}, indent=2))
    raise typer.Exit(0 if healthy else 1)
