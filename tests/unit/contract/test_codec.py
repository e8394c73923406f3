"""Dataclasses survive a round trip through JSON, and an error names what does not fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from tailrace.contract.codec import ContractError, Tagged, decode, encode, from_json, to_json


class Color(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Circle(Tagged):
    radius: float


@dataclass(frozen=True)
class UnitSquare(Tagged):
    pass


@dataclass(frozen=True)
class Picture:
    name: str
    color: Color
    shapes: tuple[Circle | UnitSquare, ...]
    counts: Mapping[int, int]
    best: Circle | None
    notes: Mapping[str, str]
    shown: bool
    raw: Any


PICTURE = Picture(
    "ä", Color.RED, (Circle(1.5), UnitSquare()), {1: 2**40}, Circle(2.0), {"camelCase": "kept"}, True, [{"a": None}]
)


def changed(**changes: Any) -> dict[str, Any]:
    return {**encode(PICTURE), **changes}


def test_what_is_encoded_is_decoded_again() -> None:
    assert from_json(Picture, to_json(PICTURE)) == PICTURE
    assert json.loads(to_json(PICTURE))["shapes"] == [{"type": "circle", "radius": 1.5}, {"type": "unit_square"}]
    assert decode(Picture, changed(best=None)).best is None
    assert decode(tuple[Picture, ...], [encode(PICTURE)]) == (PICTURE,)


def test_a_whole_number_is_a_float_too() -> None:
    radius = decode(Circle, {"type": "circle", "radius": 3}).radius
    assert (radius, type(radius)) == (3.0, float)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"extra": 1}, "Picture.extra is unknown"),
        ({"name": None}, "Picture.name: None is not of type str"),
        ({"shown": 1}, "Picture.shown: 1 is not of type bool"),
        ({"counts": {"1": True}}, "Picture.counts[1]: True is not of type int"),
        ({"counts": {"one": 1}}, "Picture.counts: a key is wrong"),
        ({"color": "green"}, "Picture.color: 'green' is no Color"),
        ({"shapes": {}}, "Picture.shapes: {} is not a list"),
        ({"shapes": [{"type": "triangle"}]}, "Picture.shapes[0].type: 'triangle' is none of circle, unit_square"),
        ({"shapes": [{"type": "circle"}]}, "Picture.shapes[0](circle).radius is missing"),
        ({"best": 3}, "Picture.best: 3 is not an object"),
    ],
)
def test_what_does_not_fit_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ContractError) as error:
        decode(Picture, changed(**wrong))
    assert named in str(error.value)


def test_every_missing_field_is_named() -> None:
    with pytest.raises(ContractError, match=r"Picture.best is missing; .*Picture.shown is missing"):
        decode(Picture, {"color": "red"})
