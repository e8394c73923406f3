"""Between dataclasses and JSON, strictly: an error names each field that is missing, unknown or of another type.

Field names are the same in JSON. Where a field has one of several dataclasses, its JSON says which one in `type`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import re
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

TYPE = "type"

_PLAIN = {int, float, str, bool, type(None)}

T = TypeVar("T")
Decoder = Callable[[Any, str], Any]


class ContractError(ValueError):
    """JSON that does not have the shape that both sides agreed on."""


def decode(kind: type[T], value: object) -> T:
    """The dataclass that was encoded as `value`, which is parsed JSON."""
    decoded: T = _decoder(typing.cast("Hashable", kind))(value, kind.__name__)
    return decoded


def from_json(kind: type[T], text: str | bytes) -> T:
    return decode(kind, parsed(text))


def parsed(text: str | bytes) -> Any:
    """Like `json.loads`, but whatever is wrong with the text is a ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ContractError("it is nested too deeply") from None


def encode(value: Any) -> Any:
    """Dicts, lists and plain values, ready for `json.dumps`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        tag = {TYPE: tag_of(type(value))} if isinstance(value, Tagged) else {}
        return tag | {name: encode(getattr(value, name)) for name in _fields(type(value))}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        # A history has tens of thousands of numbers, and is encoded every second.
        return [one if one.__class__ in _PLAIN else encode(one) for one in value]
    return value


def to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(encode(value), indent=indent)


class Tagged:
    """Base of dataclasses that stand for one another in a union."""


def tag_of(kind: type) -> str:
    """`QueryStarted` is `query_started`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def field_types(kind: Any) -> dict[str, Any]:
    """The fields of a dataclass and their types, in order."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@functools.cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@functools.cache
def _decoder(kind: Any) -> Decoder:
    if dataclasses.is_dataclass(kind):
        return _dataclass_decoder(typing.cast("type", kind))
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union_decoder(arguments)
    if origin is tuple:
        return _tuple_decoder(_decoder(arguments[0]))
    if origin is Mapping:
        return _mapping_decoder(arguments[0], _decoder(arguments[1]))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _enum_decoder(kind)
    if kind is Any:
        return lambda value, _: value
    return _plain_decoder(kind)


def _dataclass_decoder(kind: type) -> Decoder:
    # Looked up when the first value comes: a dataclass may refer to itself.
    @functools.cache
    def decoders() -> dict[str, Decoder]:
        return {name: _decoder(of) for name, of in field_types(kind).items()}

    tagged = issubclass(kind, Tagged)

    def decode_dataclass(value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise ContractError(f"{path}: {_shown(value)} is not an object")
        given = {name: one for name, one in value.items() if name != TYPE} if tagged else value
        fields = decoders()
        if given.keys() != fields.keys():
            missing, unknown = fields.keys() - given.keys(), given.keys() - fields.keys()
            said = [f"{path}.{name} is missing" for name in sorted(missing)]
            raise ContractError("; ".join([*said, *(f"{path}.{name} is unknown" for name in sorted(unknown))]))
        return kind(**{name: fields[name](one, f"{path}.{name}") for name, one in given.items()})

    return decode_dataclass


def _union_decoder(kinds: tuple[Any, ...]) -> Decoder:
    optional = type(None) in kinds
    others = [kind for kind in kinds if kind is not type(None)]
    decode_present = _decoder(others[0]) if len(others) == 1 else _tagged_decoder(others)

    def decode_union(value: Any, path: str) -> Any:
        return None if optional and value is None else decode_present(value, path)

    return decode_union


def _tagged_decoder(kinds: list[Any]) -> Decoder:
    by_tag = {tag_of(kind): _decoder(kind) for kind in kinds}

    def decode_tagged(value: Any, path: str) -> Any:
        tag = value.get(TYPE) if isinstance(value, dict) else None
        if not isinstance(tag, str) or tag not in by_tag:
            raise ContractError(f"{path}.{TYPE}: {_shown(tag)} is none of {', '.join(by_tag)}")
        return by_tag[tag](value, f"{path}({tag})")

    return decode_tagged


def _tuple_decoder(decode_one: Decoder) -> Decoder:
    def decode_tuple(value: Any, path: str) -> Any:
        if not isinstance(value, list):
            raise ContractError(f"{path}: {_shown(value)} is not a list")
        return tuple([decode_one(one, f"{path}[{place}]") for place, one in enumerate(value)])

    return decode_tuple


def _mapping_decoder(key: Callable[[str], Any], decode_one: Decoder) -> Decoder:
    def decode_mapping(value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise ContractError(f"{path}: {_shown(value)} is not an object")
        try:
            return {key(name): decode_one(one, f"{path}[{name}]") for name, one in value.items()}
        except ContractError:
            raise
        except ValueError as failure:
            raise ContractError(f"{path}: a key is wrong: {failure}") from None

    return decode_mapping


def _enum_decoder(kind: type[enum.Enum]) -> Decoder:
    def decode_enum(value: Any, path: str) -> Any:
        try:
            return kind(value)
        except ValueError:
            raise ContractError(f"{path}: {_shown(value)} is no {kind.__name__}") from None

    return decode_enum


def _plain_decoder(kind: type) -> Decoder:
    # JSON writes 1.0 as it likes; only Python takes a bool for an int.
    accepted = (int, float) if kind is float else (kind,)

    def decode_plain(value: Any, path: str) -> Any:
        number: Any = value
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise ContractError(f"{path}: {_shown(value)} is not of type {kind.__name__}")
        try:
            return float(number) if kind is float else value
        except OverflowError:
            raise ContractError(f"{path}: {_shown(value)} is too large") from None

    return decode_plain


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists
        text = f"this {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:59]}…"
