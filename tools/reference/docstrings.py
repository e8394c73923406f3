"""From a docstring to Markdown."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

_PARAMETER = re.compile(r":param (\w+): ")


def text_and_parameters(thing: object) -> tuple[str, dict[str, str]]:
    """Split a docstring into its text and its descriptions of parameters, one line each."""
    text, *described = re.split(r"^(?=:param )", inspect.getdoc(thing) or "", flags=re.MULTILINE)
    parameters = {}
    for one in described:
        match = _PARAMETER.match(one)
        assert match, f"{thing}: write ':param name: what it is'"
        parameters[match[1]] = " ".join(one[match.end() :].split())
    return text.strip(), parameters


def markdown(text: str) -> str:
    """Fence the indented examples, and keep the rest."""
    return "\n\n".join(_blocks(text.replace("``", "`")))


def _blocks(text: str) -> Iterator[str]:
    example: list[str] = []
    for block in [*re.split(r"\n\n+", text), ""]:
        if block.startswith("    "):
            example.append(block)
            continue
        if example:
            code = textwrap.dedent("\n\n".join(example))
            yield f"```py\n{code}\n```"
            example = []
        if block:
            yield block


def one_line(thing: object) -> str:
    """The whole docstring as one paragraph, for a list of members."""
    text, parameters = text_and_parameters(thing)
    return " ".join([*text.replace("``", "`").split(), *(f"`{name}`: {what}" for name, what in parameters.items())])
