"""Reads `.properties` files as Java does, and resolves Kafka's `${provider:path:key}` references."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tailrace.errors import ConfigurationError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_REFERENCE = re.compile(r"\$\{([^}:]+):(?:([^}:]*):)?([^}]+)\}")
_PROVIDERS = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider."


def parse(text: str) -> dict[str, str]:
    """The keys and values; of a key that is there twice, the last value."""
    found = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        found[key] = value
    return found


def read_file(file: Path) -> dict[str, str]:
    """The properties of a file, with Kafka's references to other files and to the environment replaced."""
    try:
        return resolve(parse(file.read_text(encoding="utf-8")))
    except OSError as failure:
        raise bad_config(f"{file} cannot be read: {failure.strerror}.", "name a file with client properties.") from None
    except UnicodeDecodeError:
        raise bad_config(f"{file} is not a text file.", "name a file with client properties, such as "
                         "security.protocol=SASL_SSL.") from None  # fmt: skip


def resolve(properties: Mapping[str, str]) -> dict[str, str]:
    """Replace references such as `${file:/run/secrets/kafka:password}`, for Kafka's own three providers."""
    names = [name.strip() for name in properties.get(_PROVIDERS, "").split(",") if name.strip()]
    classes = {name: properties.get(f"{_PROVIDERS}.{name}.class", "").removeprefix(_PACKAGE) for name in names}

    def value(reference: re.Match[str]) -> str:
        provider, path, key = reference[1], reference[2] or "", reference[3]
        return reference[0] if provider not in classes else _look_up(provider, classes[provider], path, key)

    return {
        key: _REFERENCE.sub(value, text)
        for key, text in properties.items()
        if key != _PROVIDERS and not key.startswith(f"{_PROVIDERS}.")
    }


def bad_config(problem: str, fix: str) -> ConfigurationError:
    return ConfigurationError("TAILRACE_BAD_KAFKA_CONFIG", problem, fix)


def _look_up(provider: str, class_name: str, path: str, key: str) -> str:
    try:
        if class_name == "FileConfigProvider":
            return parse(Path(path).read_text(encoding="utf-8"))[key]
        if class_name == "DirectoryConfigProvider":
            if "/" in key:
                raise KeyError(key)
            return (Path(path) / key).read_text(encoding="utf-8")
        if class_name == "EnvVarConfigProvider":
            return os.environ[key]
    except (OSError, KeyError, UnicodeDecodeError):
        where = f"{path}:{key}" if path else key
        raise bad_config(
            f"the configuration provider '{provider}' has no value for {where}.",
            "check that the file or variable exists and that this user may read it.",
        ) from None
    raise bad_config(
        f"the configuration provider '{provider}' has the class '{class_name}', which only Java can run.",
        "use FileConfigProvider, DirectoryConfigProvider or EnvVarConfigProvider.",
    )


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments, each joined with the lines that continue it."""
    pending: str | None = None
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(" \t\f")
        if pending is None and (not line or line[0] in "#!"):
            continue
        joined = (pending or "") + line
        if _continues(line):
            pending = joined[:-1]
        else:
            yield joined
            pending = None
    if pending:
        yield pending


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=: \t\f":
        end += 2 if line[end] == "\\" else 1
    end = min(end, len(line))
    rest = line[end:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return _unescaped(line[:end]), _unescaped(rest)


def _unescaped(text: str) -> str:
    def one(escape: re.Match[str]) -> str:
        code = escape[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.|$)", one, text)
