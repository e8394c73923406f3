"""Commands that Ctrl-C ends."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import typer

from tailrace._process.console import console

INTERRUPTED = 130


def interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """Ctrl-C ends a command with the exit code that shells expect."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            console.print("Stopped.")
            raise typer.Exit(INTERRUPTED) from None

    return run
