"""`tailrace check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from tailrace._process.console import SafeConsole, console
from tailrace.check.script_check import ScriptQueries, check_script
from tailrace.check.verdict import SIGNS
from tailrace.cli.kafka_config import KafkaConfig
from tailrace.contract.findings import Severity

COLORS = {Severity.BLOCKING: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}
CLEAR, BLOCKED = 0, 1


def check(
    script: Annotated[
        Path, typer.Argument(help="The Python script that starts the queries.", exists=True, dir_okay=False)
    ],
    arguments: Annotated[list[str] | None, typer.Argument(help="The script's own arguments.")] = None,
    from_microbatch: Annotated[
        bool, typer.Option("--from-microbatch", help="Also report what would change for micro-batch queries.")
    ] = False,
    master: Annotated[str | None, typer.Option(help="Check against this Spark master, not the script's own.")] = None,
    kafka_config: KafkaConfig = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Check the queries of a script before they run, and show the fix for each finding.

    The script runs as it is, except that its streams are not started. Sinks and checkpoints are not touched.
    Exit code 0 if all is clear, 1 if a query is blocked, 2 for wrong usage.
    """
    with console.status("Checking…"):
        found = check_script(
            script, arguments or [], from_micro_batch=from_microbatch, master=master, kafka_config=kafka_config
        )
    if as_json:
        queries = [verdict.to_dict() for verdict in found.verdicts]
        failure = None if found.failure is None else str(found.failure)
        report = {"blocked": found.blocked, "queries": queries, "micro_batch": found.micro_batch, "failure": failure}
        print(json.dumps(report, indent=2))
    else:
        _show(found)
    if found.failure is not None:
        raise found.failure
    raise typer.Exit(BLOCKED if found.blocked else CLEAR)


def _show(found: ScriptQueries) -> None:
    output = SafeConsole(highlight=False)
    for verdict in found.verdicts:
        color = "red" if verdict.blocked else "green"
        output.print(f"[bold]{escape(verdict.title)}[/]: [{color}]{verdict.summary}[/]", soft_wrap=True)
        if verdict.shape.stages:
            output.print(f"  task slots: {verdict.shape.arithmetic}", soft_wrap=True)
        for finding in verdict.findings:
            head = f"[{COLORS[finding.severity]}]{SIGNS[finding.severity]} {finding.code}[/]"
            output.print(f"{head}  {escape(finding.heading)}", soft_wrap=True)
            output.print(f"    {escape(finding.detail)}", soft_wrap=True)
            if finding.fix:
                output.print(f"    [bold]Fix:[/] {escape(finding.fix)}", soft_wrap=True)
        output.print()
    for line in found.micro_batch:
        text = f"{line}: micro-batch, not checked; --from-microbatch shows what would change."
        output.print(escape(text), soft_wrap=True)
