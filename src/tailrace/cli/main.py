"""The command line: thin functions over the library, and one place that turns errors into exit codes."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated

import typer
from rich.markup import escape

from tailrace._process.console import console
from tailrace._process.redaction import hide_in_text
from tailrace._version import __version__
from tailrace.cli.bench import bench
from tailrace.cli.chaos import chaos
from tailrace.cli.check import check
from tailrace.cli.demo import demo
from tailrace.cli.doctor import doctor
from tailrace.cli.drain import drain
from tailrace.cli.explain import explain
from tailrace.cli.interruptible import interruptible
from tailrace.cli.kafka import kafka
from tailrace.cli.new import new
from tailrace.cli.run import RunCommand, run
from tailrace.cli.size import size
from tailrace.cli.top import top
from tailrace.errors import TailraceError

FAILED = 1
# Arguments after the script's name belong to the script.
SCRIPT_ARGUMENTS = {"allow_interspersed_args": False}

app = typer.Typer(
    help="Spark's Real-Time Mode, complete for PySpark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.command(context_settings=SCRIPT_ARGUMENTS)(interruptible(chaos))
app.command(context_settings=SCRIPT_ARGUMENTS)(interruptible(check))
app.command()(interruptible(demo))
app.command()(interruptible(doctor))
app.command()(interruptible(drain))
app.command(context_settings=SCRIPT_ARGUMENTS)(interruptible(explain))
app.command()(interruptible(new))
app.command(cls=RunCommand, context_settings=SCRIPT_ARGUMENTS)(interruptible(run))
app.command()(interruptible(size))
app.command()(interruptible(top))
app.add_typer(bench, name="bench")
app.add_typer(kafka, name="kafka")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"tailrace {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    # SIGTERM cleans up like Ctrl-C.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app(standalone_mode=True)
    except TailraceError as error:
        console.print(f"[red]error[/] \\[{error.code}] {escape(hide_in_text(error.problem))}", soft_wrap=True)
        console.print(f"[bold]Fix:[/] {escape(hide_in_text(error.fix))}", soft_wrap=True)
        sys.exit(FAILED)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
