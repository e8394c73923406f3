"""`docs/reference/api.md`: the public names, from their docstrings."""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from functools import cached_property
from types import ModuleType
from typing import Any

from tools.reference.docstrings import markdown, one_line, text_and_parameters

MODULES = (
    "tailrace",
    "tailrace.results",
    "tailrace.errors",
    "tailrace.testing",
    "tailrace.loadtest",
    "tailrace.dashboard",
)
WIDTH = 100

INTRODUCTION = """\
<!-- Generated from docstrings by `make docs`. Change those instead. -->

# Python API

These names are public. Anything else may change without notice. See also the [command line](cli.md), the
[settings](settings.md) and the [errors](errors.md).
"""


def page() -> str:
    parts = [INTRODUCTION.strip()]
    for name in MODULES:
        # Not by attribute: `tailrace.dashboard` is also a function.
        module = importlib.import_module(name)
        parts += [f"## Module {name}", markdown(inspect.getdoc(module) or "")]
        parts += [block for public in public_names(module) for block in _name(name, public, getattr(module, public))]
    return "\n\n".join(part for part in parts if part) + "\n"


def public_names(module: ModuleType) -> list[str]:
    """`__all__` without names that another section shows, or else the classes that the module defines."""
    names: list[str] = getattr(module, "__all__", None) or [
        name
        for name, one in vars(module).items()
        if inspect.isclass(one) and one.__module__ == module.__name__ and not name.startswith("_")
    ]
    # The errors have a section of their own, and `__version__` needs no description.
    own = [name for name in names if module.__name__ == "tailrace.errors" or not name.endswith("Error")]
    return [name for name in own if not name.startswith("__")]


def _name(module: str, name: str, thing: Any) -> Iterator[str]:
    yield f"### {module}.{name}"
    if inspect.isclass(thing):
        yield from _class(name, thing)
    elif callable(thing):
        text, parameters = text_and_parameters(thing)
        yield f"```py\n{signature(name, thing)}\n```"
        yield markdown(text)
        yield _parameters(parameters)
    else:
        yield f"```py\n{name} = {_value(thing)}\n```"


def _class(name: str, cls: type) -> Iterator[str]:
    text, parameters = text_and_parameters(cls)
    bases = [base.__name__ for base in cls.__bases__ if base is not object]
    if parameters:
        yield f"```py\n{signature(name, cls)}\n```"
    elif bases:
        yield f"Subclass of `{'`, `'.join(bases)}`."
    yield markdown(text)
    yield _parameters(parameters)
    if members := [*_values(cls), *_fields(cls), *_members(cls)]:
        yield "\n".join(["Members:\n", *members])


def _parameters(parameters: dict[str, str]) -> str:
    lines = [f"- `{name}`: {what}" for name, what in parameters.items()]
    return "\n".join(["Parameters:\n", *lines]) if lines else ""


def _values(cls: type) -> Iterator[str]:
    if issubclass(cls, enum.Enum):
        yield from (f"- `{one.name}`: `{_value(one.value)}`" for one in cls)


def _fields(cls: type) -> Iterator[str]:
    if not dataclasses.is_dataclass(cls):
        return
    described = _field_docstrings(cls)
    for field in dataclasses.fields(cls):
        what = described.get(field.name)
        yield f"- `{field.name}: {_annotation(field.type)}`" + (f": {what}" if what else "")


def _field_docstrings(cls: type) -> dict[str, str]:
    """The strings below fields, which describe them. Python does not keep them at run time."""
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            found[field.target.id] = " ".join(str(ast.literal_eval(below.value)).split())
    return found


def _members(cls: type) -> Iterator[str]:
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        function = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
        if not inspect.isfunction(function):
            continue
        if isinstance(member, property | cached_property):
            shown = f"{name}: {_annotation(inspect.signature(function).return_annotation)}"
        else:
            shown = " ".join(signature(name, function, width=10_000).split())
        yield f"- `{shown}`: {one_line(function)}"


def signature(name: str, function: Any, *, width: int = WIDTH) -> str:
    """Like `inspect.signature`, without quotes, addresses and `self`; one parameter per line if it is too long."""
    found = inspect.signature(function)
    parameters: list[str] = []
    keyword_only = False
    for parameter in found.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            keyword_only = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parameters.append("*")
            keyword_only = True
        parameters.append(_parameter(parameter))
    returned = "" if inspect.isclass(function) else f" -> {_returned(function, found)}"
    on_one_line = f"{name}({', '.join(parameters)}){returned}"
    if len(on_one_line) <= width:
        return on_one_line
    lines = "".join(f"    {parameter},\n" for parameter in parameters)
    return f"{name}(\n{lines}){returned}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = "*" * (parameter.kind is parameter.VAR_POSITIONAL) + "**" * (parameter.kind is parameter.VAR_KEYWORD)
    shown = f"{stars}{parameter.name}: {_annotation(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return shown
    plain = isinstance(parameter.default, str | int | float | bool | tuple | None)
    return f"{shown} = {_value(parameter.default) if plain else '…'}"


def _value(value: object) -> str:
    """With the quotes that the formatter for code in Markdown expects."""
    return repr(value).replace("'", '"')


def _returned(function: Any, found: inspect.Signature) -> str:
    shown = _annotation(found.return_annotation)
    # A generator behind `@contextmanager`: the caller gets a context manager.
    if hasattr(function, "__wrapped__") and shown.startswith("Iterator["):
        return shown.replace("Iterator[", "AbstractContextManager[", 1)
    return shown


def _annotation(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
