"""`tailrace drain`."""

from __future__ import annotations

from typing import Annotated

import typer

from tailrace._process.console import console
from tailrace.contract.codec import to_json
from tailrace.dashboard.top import default_url
from tailrace.supervise.remote import drain_at


def drain(
    url: Annotated[
        str | None, typer.Argument(help="The application's dashboard.", show_default="the one on this machine")
    ] = None,
    query: Annotated[str | None, typer.Option(help="Only the query with this name or id.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds the commit may take.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was drained as JSON on standard output.")] = False,
) -> None:
    """Commit the open epoch of a running application's queries and stop them, so the next run repeats nothing.

    For an application on another machine, set its token in the environment variable TAILRACE_TOKEN.
    """
    drained = drain_at(url or default_url("drain"), query, timeout)
    if as_json:
        print(to_json(drained, indent=2))
        return
    for one in drained:
        console.print(f"[green]✓[/] {one}", soft_wrap=True, highlight=False)
