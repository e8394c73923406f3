"""`docs/reference/cli.md`: the commands, from their functions."""

from __future__ import annotations

import enum
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

from tailrace.cli.main import app
from tools.reference.docstrings import markdown

INTRODUCTION = """\
<!-- Generated from the commands by `make docs`. Change src/tailrace/cli/ instead. -->

# Command line

`tailrace --help` lists the commands, and `tailrace COMMAND --help` shows one. `tailrace --version` prints the version.
Results go to standard output, progress and errors to standard error. A failed command exits with code 1, a mistyped one
with 2, unless its section says more. `python -m tailrace` is the same command.
"""
METAVARS = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}


def page() -> str:
    parts = [INTRODUCTION.strip()]
    for path, callback in commands(app, "tailrace"):
        parts += _command(path, callback)
    return "\n\n".join(parts) + "\n"


def commands(group: typer.Typer, path: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield f"{path} {command.name or command.callback.__name__.replace('_', '-')}", command.callback
    for nested in group.registered_groups:
        assert nested.typer_instance is not None
        of_group = nested.typer_instance.registered_callback
        if of_group is not None and of_group.invoke_without_command and of_group.callback is not None:
            yield f"{path} {nested.name}", of_group.callback
        yield from commands(nested.typer_instance, f"{path} {nested.name}")


def _command(path: str, callback: Callable[..., Any]) -> Iterator[str]:
    parameters = list(_parameters(callback))
    arguments = [one for one in parameters if isinstance(one.info, ArgumentInfo)]
    options = [one for one in parameters if isinstance(one.info, OptionInfo)]
    usage = " ".join([path, *(["[OPTIONS]"] if options else []), *(one.shown for one in arguments)])
    yield f"## {path}"
    yield f"```text\n{usage}\n```"
    yield markdown(inspect.getdoc(callback) or "")
    if arguments:
        yield _table("argument", arguments)
    if options:
        yield _table("option", options)


class _Parameter:
    """An argument or option of a command, as a row of a table."""

    def __init__(self, name: str, annotation: Any, info: ParameterInfo, default: object) -> None:
        self.info = info
        self._name = name
        self._default = default
        self._type, self._repeated = _type(annotation)

    @property
    def shown(self) -> str:
        if isinstance(self.info, OptionInfo):
            # In `Annotated[…, typer.Option("--json", "-j")]` the first name arrives as the default.
            declared = [self.info.default, *(self.info.param_decls or ())]
            names = [name for name in declared if isinstance(name, str) and name.startswith("-")]
            names = names or [f"--{self._name.replace('_', '-')}"]
            if self._is_on_by_default:
                names += [f"--no-{self._name.replace('_', '-')}"]
            return f"{', '.join(names)} {self._metavar}".strip()
        name = self._name.upper() + ("..." if self._repeated else "")
        return name if self._default is inspect.Parameter.empty else f"[{name}]"

    @property
    def default(self) -> str:
        if isinstance(self.info.show_default, str):
            return self.info.show_default
        if self._default is inspect.Parameter.empty:
            return "required"
        if self._default is None or self._default is False or not self.info.show_default:
            return ""
        if self._is_on_by_default:
            return "on"
        value = self._default.value if isinstance(self._default, enum.Enum) else self._default
        return f"`{value}`"

    @property
    def help(self) -> str:
        text = (self.info.help or "").strip()
        if isinstance(self._type, type) and issubclass(self._type, enum.Enum):
            text += f" One of {', '.join(f'`{one.value}`' for one in self._type)}."
        return " ".join([text, *self._limits()]).strip()

    @property
    def _is_on_by_default(self) -> bool:
        """typer adds a flag that switches it off."""
        return self._type is bool and self._default is True

    @property
    def _metavar(self) -> str:
        return "" if self._type is bool else METAVARS.get(self._type, "NAME")

    def _limits(self) -> Iterator[str]:
        if self.info.min:
            yield f"At least {self.info.min:g}."
        if self.info.max:
            yield f"At most {self.info.max:g}."


def _parameters(callback: Callable[..., Any]) -> Iterator[_Parameter]:
    hints = typing.get_type_hints(callback, include_extras=True)
    for name, parameter in inspect.signature(callback).parameters.items():
        if typing.get_origin(hint := hints[name]) is not Annotated:
            continue
        annotation, info = typing.get_args(hint)[:2]
        if isinstance(info, ParameterInfo) and not info.hidden:
            yield _Parameter(name, annotation, info, parameter.default)


def _type(annotation: Any) -> tuple[Any, bool]:
    """The type behind `… | None` and `list[…]`, and whether it may be repeated."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        [annotation] = [one for one in typing.get_args(annotation) if one is not types.NoneType]
    if typing.get_origin(annotation) is list:
        return typing.get_args(annotation)[0], True
    return annotation, False


def _table(kind: str, parameters: list[_Parameter]) -> str:
    rows = [f"| `{one.shown}` | {one.default} | {one.help} |" for one in parameters]
    return "\n".join([f"| {kind} | default | |", "|---|---|---|", *rows])
