"""Refuses state that the JVM would store as null: 1 in a column of doubles, or 1.0 in a column of integers.

Spark stores null without a word. A processor would lose what it has written and learn it from the next read, or never.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pyspark.errors import PySparkTypeError
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

CODE = "TAILRACE_STATE_TYPE"

#: Tells whether the JVM keeps a value that is not None.
Keeps = Callable[[Any], bool]

_INTEGERS = (ByteType, ShortType, IntegerType, LongType, DateType, TimestampType, TimestampNTZType)
#: What makes a value of a type that this module refuses values for.
_CONSTRUCTORS: dict[Any, str] = {
    _INTEGERS: "int",
    (FloatType, DoubleType): "float",
    BooleanType: "bool",
    DecimalType: "Decimal",
    BinaryType: "bytes",
    ArrayType: "list",
    MapType: "dict",
    StructType: "tuple",
}


class NullCheck:
    """Checks values of one schema, in the form in which they are sent to the JVM."""

    def __init__(self, schema: StructType) -> None:
        self._fields = schema.fields
        self._keeps = [_keeps(field.dataType) for field in schema.fields]

    def __call__(self, values: Any) -> None:
        for value, keeps, field in zip(values, self._keeps, self._fields, strict=False):
            if not _kept(value, keeps):
                raise PySparkTypeError(
                    f"[{CODE}] Spark would store {value!r} ({type(value).__name__}) as null, because the "
                    f"state's column '{field.name}' is of type {field.dataType.simpleString()}.\n"
                    f"Fix: convert the value to the column's type, for example with {_example(field.dataType)}, "
                    "or change the type of the column."
                )


def _example(data_type: DataType) -> str:
    name = next(name for kind, name in _CONSTRUCTORS.items() if isinstance(data_type, kind))
    return f"{name}(value)"


def _keeps(data_type: DataType) -> Keeps | None:
    """None if the type keeps everything, as strings do, or is not known here."""
    if isinstance(data_type, ArrayType):
        return _array(_keeps(data_type.elementType))
    if isinstance(data_type, MapType):
        return _map(_keeps(data_type.keyType), _keeps(data_type.valueType))
    if isinstance(data_type, StructType):
        return _struct([_keeps(field.dataType) for field in data_type.fields])
    if isinstance(data_type, _INTEGERS):
        return _is_integer
    if isinstance(data_type, FloatType | DoubleType):
        return _of_type(float)
    if isinstance(data_type, BooleanType):
        return _of_type(bool)
    if isinstance(data_type, DecimalType):
        return _of_type(Decimal)
    if isinstance(data_type, BinaryType):
        return _of_type(bytes, bytearray, str)
    return None


def _is_integer(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**63
    return _is_nan(value)


def _is_nan(value: Any) -> bool:
    """In pandas NaN is a null of any type."""
    return isinstance(value, float) and math.isnan(value)


def _of_type(*kinds: type) -> Keeps:
    return lambda value: isinstance(value, kinds) or _is_nan(value)


def _array(element: Keeps | None) -> Keeps:
    return lambda value: isinstance(value, list | tuple | array) and all(_kept(one, element) for one in value)


def _map(key: Keeps | None, item: Keeps | None) -> Keeps:
    return lambda value: isinstance(value, dict) and all(_kept(k, key) and _kept(v, item) for k, v in value.items())


def _struct(fields: list[Keeps | None]) -> Keeps:
    return lambda value: isinstance(value, list | tuple) and all(map(_kept, value, fields))


def _kept(value: Any, keeps: Keeps | None) -> bool:
    return value is None or keeps is None or keeps(value)
