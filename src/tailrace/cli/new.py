"""`tailrace new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailrace._process.console import SafeConsole
from tailrace.new.project import TEMPLATES, new_project


def new(
    name: Annotated[str, typer.Argument(help="The project's name: a folder of this name is made here.")],
    template: Annotated[str, typer.Option("--from", help=f"The application to begin with: {', '.join(TEMPLATES)}.")],
) -> None:
    """Begin a project with one of the example applications.

    The folder has the query, its test, a load generator, requirements, a Dockerfile and a README.
    """
    folder = new_project(name, template, Path.cwd())
    output = SafeConsole(highlight=False)
    output.print(f"{folder.name}: {TEMPLATES[template]}", soft_wrap=True, markup=False)
    output.print(
        f"  cd {folder.name}\n  pip install -r requirements.txt\n  pytest           # its test, on embedded servers\n"
        "  python run.py    # under load, with figures"
    )
