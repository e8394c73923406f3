"""Tells which values come back from the state store as they were written, and so can be cached.

The JVM may store another value than it was given: 1 in a column of doubles becomes null, and a decimal takes the scale
of its column. A value that may change is written to the store and read again.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming import stateful_processor_api_client as state_api
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    Row,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_INTEGER_BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_SEQUENCES = (tuple, list, Row)

Converter = Callable[[Any], Any]


class InexactError(Exception):
    """The value may come back changed."""


class ExactValues:
    """Predicts what comes back from the store for values of one schema."""

    def __init__(self, schema: StructType, *, as_keys: bool = False) -> None:
        kinds = [type(field.dataType) for field in schema.fields]
        self._converters = [
            converter for field in schema.fields if (converter := _converter(field.dataType)) is not None
        ]
        self._nullable = [field.nullable and not as_keys for field in schema.fields]
        # Two keys can be equal in Python and different in Spark: 0.0 and -0.0.
        self.possible = len(self._converters) == len(kinds) and not (as_keys and DoubleType in kinds)

    def of(self, value: Any) -> tuple[Any, ...]:
        """The value as it will come back; raises `InexactError` if that is unknown."""
        if not self.possible or type(value) not in _SEQUENCES or len(value) != len(self._converters):
            raise InexactError
        try:
            return self._converted(value)
        except InexactError:
            # PySpark converts NumPy's scalars to Python's; try again with those.
            if state_api.has_numpy is None:
                state_api._load_numpy()
            return self._converted([state_api._normalize_state_value(one) for one in value])

    def _converted(self, value: Any) -> tuple[Any, ...]:
        result: list[Any] = []
        for one, convert, nullable in zip(value, self._converters, self._nullable, strict=True):
            if one is None:
                if not nullable:
                    raise InexactError
                result.append(None)
            else:
                result.append(convert(one))
        return tuple(result)


def _converter(data_type: DataType) -> Converter | None:
    kind = type(data_type)
    if kind in _INTEGER_BITS:
        return _integer(_INTEGER_BITS[kind])
    if kind is StringType:
        return _string
    if kind is DoubleType:
        return _of_type(float)
    if kind is BooleanType:
        return _of_type(bool)
    if kind is DateType:
        return _of_type(datetime.date)
    if kind in (TimestampType, TimestampNTZType):
        return _timestamp(data_type)
    return None


def _integer(bits: int) -> Converter:
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def convert(value: Any) -> Any:
        if type(value) is int and lowest <= value <= highest:
            return value
        raise InexactError

    return convert


def _of_type(kind: type) -> Converter:
    def convert(value: Any) -> Any:
        if type(value) is kind:
            return value
        raise InexactError

    return convert


def _string(value: Any) -> Any:
    if type(value) is not str:
        raise InexactError
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InexactError from None
    return value


def _timestamp(data_type: Any) -> Converter:
    def convert(value: Any) -> Any:
        if type(value) is datetime.datetime and value.tzinfo is None:
            return data_type.fromInternal(data_type.toInternal(value))
        raise InexactError

    return convert
