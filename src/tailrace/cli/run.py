"""`tailrace run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand

from tailrace._process.arguments import require_seconds
from tailrace._process.console import console
from tailrace._process.paths import log_file
from tailrace._spark.java import require_java
from tailrace.dashboard import require_web
from tailrace.supervise.run.arguments import Arguments, refuse_what_cannot_be_supervised, take_apart
from tailrace.supervise.run.health_server import HealthServer
from tailrace.supervise.run.restarts import Restarts
from tailrace.supervise.run.status import Status
from tailrace.supervise.run.submit import command_of, conf_of, environment_of
from tailrace.supervise.run.supervisor import RunOptions, Supervisor

TAKEN_APART = "tailrace.run.arguments"


class RunCommand(TyperCommand):
    """Removes spark-submit's arguments before ours are parsed: only spark-submit knows them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options: list[str] = []
        flags: list[str] = [*self.get_help_option_names(ctx)]
        for parameter in self.params:
            if parameter.param_type_name == "option":
                names = [*parameter.opts, *parameter.secondary_opts]
                (flags if getattr(parameter, "is_flag", False) else options).extend(names)
        arguments = take_apart(args, options, flags)
        ctx.meta[TAKEN_APART] = arguments
        script = ["--", arguments.script, *arguments.script_arguments] if arguments.script else []
        return super().parse_args(ctx, [*arguments.own, *script])


def run(
    ctx: typer.Context,
    script: Annotated[
        Path, typer.Argument(help="The Python script that starts the queries.", exists=True, dir_okay=False)
    ],
    arguments: Annotated[list[str] | None, typer.Argument(help="The script's own arguments.")] = None,
    restarts: Annotated[int, typer.Option(help="Maximum number of restarts in a row.", min=0)] = 10,
    stable_after: Annotated[
        float, typer.Option(help="Reset the restart counter after this many healthy seconds.", min=0)
    ] = 600.0,
    backoff: Annotated[
        float, typer.Option(help="Seconds before the first restart, doubled for each further one.", min=0)
    ] = 2.0,
    backoff_limit: Annotated[float, typer.Option(help="Maximum seconds between restarts.", min=0)] = 60.0,
    query_grace: Annotated[
        float, typer.Option(help="Seconds the script has to restart a failed query itself.", min=0)
    ] = 30.0,
    drain_timeout: Annotated[float, typer.Option(help="Seconds a drain may take on shutdown.", min=0)] = 60.0,
    health_port: Annotated[
        int, typer.Option(help="Serve /health and /ready on this port.", show_default="a free one")
    ] = 0,
    health_host: Annotated[str, typer.Option(help="Address of the health server; 0.0.0.0 for all.")] = "127.0.0.1",
    incidents: Annotated[
        Path | None, typer.Option(help="Folder for incident reports.", file_okay=False, show_default="the state folder")
    ] = None,
    show_spark_log: Annotated[
        bool, typer.Option("--show-spark-log", help="Also print Spark's log on standard error.")
    ] = False,
) -> None:
    """Run an application under supervision: restart it when it fails, drain it on shutdown.

    A thin layer over spark-submit: any other option before the script is passed to spark-submit. SIGTERM and Ctrl-C
    drain the queries, so the next run repeats nothing. A second signal stops at once.

    Exit code 0 if drained or finished, 3 if no restart would help, 4 if the restarts are used up, 5 if the drain
    failed, 130 or 143 if stopped at once, 1 if it could not start, 2 for wrong usage.
    """
    given: Arguments = ctx.meta[TAKEN_APART]
    refuse_what_cannot_be_supervised(given)
    if script.suffix != ".py":
        raise typer.BadParameter(f"{script} is not a Python script.")
    for name, seconds in {
        "--stable-after": stable_after,
        "--backoff": backoff,
        "--backoff-limit": backoff_limit,
        "--query-grace": query_grace,
        "--drain-timeout": drain_timeout,
    }.items():
        require_seconds(name, seconds)
    require_java()
    require_web()
    conf = conf_of(given)
    options = RunOptions(
        script=str(script),
        command=command_of(given),
        environment=lambda folder: environment_of(folder, conf),
        log=log_file("run"),
        restarts=Restarts(restarts, backoff, backoff_limit, stable_after),
        drain_timeout_s=drain_timeout,
        query_grace_s=query_grace,
        incidents=incidents,
        show_spark_log=show_spark_log,
    )
    status = Status()
    health = HealthServer(status, health_host, health_port)
    _say(f"Health: {health.url}/health   Log: {options.log}")
    try:
        raise typer.Exit(Supervisor(options, status, _say).run())
    finally:
        health.stop()


def _say(text: str) -> None:
    console.print(f"[dim]tailrace:[/] {escape(text)}", soft_wrap=True)
