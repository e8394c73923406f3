"""Reads `sasl.jaas.config`: a login module with its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tailrace._kafka.java_properties import bad_config

_TOKEN = re.compile(r'\s*(?:"((?:\\.|[^"\\])*)"|\'((?:\\.|[^\'\\])*)\'|([^\s;="\']+)|([=;]))', re.DOTALL)
_FLAGS = ("required", "requisite", "sufficient", "optional")


@dataclass(frozen=True, repr=False)
class LoginModule:
    """Not printed: passwords are among the options."""

    name: str
    options: Mapping[str, str]


class _Sign(Enum):
    """Not a text: a quoted `;` is one."""

    EQUALS = "="
    END = ";"


def parse(text: str) -> LoginModule:
    """The first login module. No part of the text appears in an error: it holds passwords."""
    tokens = _tokens(text)
    if _Sign.END not in tokens or tokens.index(_Sign.END) < 2:
        raise _malformed()
    name, flag, *rest = tokens[: tokens.index(_Sign.END)]
    if not isinstance(name, str) or not isinstance(flag, str) or flag.lower() not in _FLAGS or len(rest) % 3:
        raise _malformed()
    options = {}
    for key, equals, value in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if equals is not _Sign.EQUALS or not isinstance(key, str) or not isinstance(value, str):
            raise _malformed()
        options[key] = value
    return LoginModule(name, options)


def _tokens(text: str) -> list[str | _Sign]:
    tokens: list[str | _Sign] = []
    position = 0
    while text[position:].strip():
        found = _TOKEN.match(text, position)
        if found is None:
            raise _malformed()
        position = found.end()
        quoted = found[1] if found[1] is not None else found[2]
        if quoted is not None:
            tokens.append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        else:
            tokens.append(found[3] or _Sign(found[4]))
    return tokens


def _malformed() -> Exception:
    return bad_config(
        "sasl.jaas.config is not a login module with its options.",
        "write it as: org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="…" password="…"; with the semicolon at its end.',
    )
