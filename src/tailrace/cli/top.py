"""`tailrace top`."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Annotated

import typer
from rich.live import Live
from rich.text import Text

from tailrace._process.arguments import require_name
from tailrace._process.console import SafeConsole
from tailrace.contract.codec import to_json
from tailrace.dashboard.top import Feed, default_url, picture
from tailrace.errors import TailraceError

PERIOD_S = 1.0


class Window(StrEnum):
    ten_seconds = "10s"
    minute = "1m"
    run = "run"


def top(
    url: Annotated[
        str | None, typer.Argument(help="The application's dashboard.", show_default="the one on this machine")
    ] = None,
    window: Annotated[Window, typer.Option(help="Time window of the figures.")] = Window.ten_seconds,
    query: Annotated[str | None, typer.Option(help="Only the query with this name or id.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Show the figures once and exit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print them once as JSON on standard output.")] = False,
) -> None:
    """Watch the latency of a running application's queries."""
    require_name("--query", query)
    feed = Feed(url or default_url())
    snapshot = feed.snapshot()
    if as_json:
        print(to_json(snapshot, indent=2))
        return
    output = SafeConsole(highlight=False)
    if once or not output.is_terminal:
        output.print(picture(snapshot, window.value, query))
        return
    with Live(picture(snapshot, window.value, query), console=output, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(PERIOD_S)
            try:
                snapshot = feed.snapshot()
                shown = picture(snapshot, window.value, query)
            except TailraceError as gone:
                # It may come back: the driver may be busy, or restarting on the same port.
                shown = Text(f"{gone.problem}\nCtrl-C ends.", style="yellow")
            live.update(shown, refresh=True)
