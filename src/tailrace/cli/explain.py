"""`tailrace explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailrace._process.console import SafeConsole, console
from tailrace.check.script_check import shapes_in
from tailrace.cli.kafka_config import KafkaConfig
from tailrace.errors import TailraceError
from tailrace.explain import Explanation


def explain(
    script: Annotated[
        Path, typer.Argument(help="The Python script that starts the queries.", exists=True, dir_okay=False)
    ],
    arguments: Annotated[list[str] | None, typer.Argument(help="The script's own arguments.")] = None,
    query: Annotated[str | None, typer.Option(help="Only the query with this name.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write .svg, .html, .txt or .json.")] = None,
    master: Annotated[str | None, typer.Option(help="Plan for this Spark master, not the script's own.")] = None,
    kafka_config: KafkaConfig = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Show how the queries of a script would run: stages, shuffles, slots and epoch boundaries.

    The script runs as it is, except that its streams are not started.
    """
    with console.status("Planning…"):
        shapes = shapes_in(script, arguments or [], master, kafka_config)
    if query is not None and query not in shapes:
        raise TailraceError(
            "TAILRACE_NO_QUERY", f"{script} starts no query '{query}'.", f"it starts: {', '.join(shapes)}."
        )
    explanations = {name: Explanation(shape) for name, shape in shapes.items() if query in (None, name)}
    if output is not None:
        _save(explanations, output)
    elif as_json:
        print(json.dumps({name: one.to_dict() for name, one in explanations.items()}, indent=2))
    else:
        _show(explanations)


def _save(explanations: dict[str, Explanation], output: Path) -> None:
    if len(explanations) > 1:
        raise TailraceError(
            "TAILRACE_NO_QUERY",
            f"one file shows one query, and the script starts {len(explanations)}.",
            f"name one with --query: {', '.join(explanations)}.",
        )
    for explanation in explanations.values():
        console.print(f"Written: {explanation.save(output)}", soft_wrap=True)


def _show(explanations: dict[str, Explanation]) -> None:
    screen = SafeConsole(highlight=False)
    for name, explanation in explanations.items():
        screen.print(f"[bold]{escape(name)}[/]", soft_wrap=True)
        if screen.is_terminal:
            screen.print(explanation.rich())
        else:
            # A file has no width to fit.
            print(explanation.text())
        screen.print()
