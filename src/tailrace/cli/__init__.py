"""The `tailrace` command."""

from tailrace.cli.main import main

__all__ = ["main"]
