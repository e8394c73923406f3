"""The command line: thin functions over the library, and one place that turns errors into exit codes."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Annotated, Any

import typer
from rich.markup import escape

from tailrace._process.console import console
from tailrace._process.redaction import hide_in_text
from tailrace._version import __version__
from tailrace.cli.chaos import chaos
from tailrace.cli.check import check
from tailrace.cli.demo import demo
from tailrace.cli.doctor import doctor
from tailrace.cli.drain import drain
from tailrace.cli.explain import explain
from tailrace.cli.kafka import kafka
from tailrace.cli.run import RunCommand, run
from tailrace.cli.size import size
from tailrace.cli.top import top
from tailrace.errors import TailraceError

FAILED, INTERRUPTED = 1, 130
# Arguments after the script's name belong to the script.
SCRIPT_ARGUMENTS = {"allow_interspersed_args": False}

app = typer.Typer(
    help="Spark's Real-Time Mode, complete for PySpark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Ctrl-C ends a command with the exit code that shells expect."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            console.print("Stopped.")
            raise typer.Exit(INTERRUPTED) from None

    return run


app.command(context_settings=SCRIPT_ARGUMENTS)(_interruptible(chaos))
app.command(context_settings=SCRIPT_ARGUMENTS)(_interruptible(check))
app.command()(_interruptible(demo))
app.command()(_interruptible(doctor))
app.command()(_interruptible(drain))
app.command(context_settings=SCRIPT_ARGUMENTS)(_interruptible(explain))
app.command(cls=RunCommand, context_settings=SCRIPT_ARGUMENTS)(_interruptible(run))
app.command()(_interruptible(size))
app.command()(_interruptible(top))
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
