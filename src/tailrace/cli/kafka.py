"""`tailrace kafka`: the embedded broker in the background, for people without one."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tailrace._broker import background as background
from tailrace._process.console import console, working

kafka = typer.Typer(help="Run an Apache Kafka broker in the background, on 127.0.0.1.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]


@kafka.command()
def start(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port to listen on.", show_default="a free port")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(help="Create this topic: NAME or NAME:PARTITIONS. May be repeated.")
    ] = None,
    secure: Annotated[
        bool,
        typer.Option("--secure", help="With TLS, users and access control lists; prints where client properties are."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Start a broker that runs until `tailrace kafka stop`."""
    topics = [background.parse_topic(text) for text in topic or []]
    running = background.start(port=port, secure=secure)
    for name, partitions in topics:
        background.ensure_topic(running, name, partitions)
    _show(running, as_json)


@kafka.command()
def stop() -> None:
    """Stop the broker and delete its data."""
    if background.status() is None:
        console.print("No broker is running.")
        return
    with working("Stopping the broker"):
        background.stop()


@kafka.command()
def status(as_json: Json = False) -> None:
    """Show the broker's address. Exit code 1 if none is running."""
    running = background.status()
    if running is None:
        print(json.dumps({"running": False})) if as_json else console.print("No broker is running.")
        raise typer.Exit(1)
    _show(running, as_json)


def _show(running: background.BackgroundBroker, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"running": True, **running.to_dict()}))
    else:
        print(running.bootstrap_servers)
        if running.config is not None:
            console.print(f"[dim]administrator: {running.config}[/]", soft_wrap=True)
            console.print(f"[dim]client: {running.client_config}[/]", soft_wrap=True)
        console.print(f"[dim]process {running.pid}, log {running.log}[/]", soft_wrap=True)
