"""The forms in which a processor takes rows and gives results: Spark's rows, or pandas frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Iterator
from functools import cache
from typing import Any

from pyspark.sql.types import Row, StructField, StructType

from tailrace_worker.pandas_cells import PandasCells


class RowForm(ABC):
    """The form in which a processor takes rows and gives results."""

    def __init__(
        self, columns: tuple[list[int], list[int]], return_type: StructType, conf: Any, *, keeps_keys: bool
    ) -> None:
        self._keys, self._values = columns
        self._type = return_type
        self._conf = conf
        # With an initial state PySpark passes the key columns along with the data.
        self._keeps_keys = keeps_keys

    @abstractmethod
    def inputs(self, batch: Any) -> Iterator[tuple[Any, Any]]:
        """The key and the value of each row."""

    @abstractmethod
    def as_batches(self, results: list[tuple[int, Any]]) -> Iterator[Any]:
        """Converts results and the indexes of their rows to Arrow batches."""


class Rows(RowForm):
    """Takes and gives `Row`s."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_type

        # The same type as in PySpark's worker.
        self._arrow: Any = to_arrow_type(self._type, timezone="UTC", prefers_large_types=False)
        self._fields = [self._arrow.field(index) for index in range(self._arrow.num_fields)]
        self._names = [field.name for field in self._fields]
        self._is_flat = not any(pa.types.is_nested(field.type) for field in self._fields)

    def inputs(self, batch: Any) -> Iterator[tuple[Any, Any]]:
        row = Row(*batch.schema.names)
        keys = self._keys
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield tuple(values[index] for index in keys), row(*values)

    def as_batches(self, results: list[tuple[int, Any]]) -> Iterator[Any]:
        import pyarrow as pa

        rows = [self._as_tuple(row) for _, row in results]
        columns = zip(*rows, strict=True) if self._names else ()
        arrays = [pa.array(values, type=field.type) for values, field in zip(columns, self._fields, strict=True)]
        yield _with_indexes(pa.StructArray.from_arrays(arrays, fields=self._fields), [index for index, _ in results])

    def _as_tuple(self, row: Any) -> tuple[Any, ...]:
        if self._is_flat and getattr(row, "__fields__", None) == self._names:
            return tuple(row)
        named = row.asDict(True)
        return tuple(named.get(name) for name in self._names)


class Frames(RowForm):
    """Takes and gives pandas frames; each row is a frame of its own."""

    def inputs(self, batch: Any) -> Iterator[tuple[Any, Any]]:
        import pandas as pd

        names = _names_in_pandas(tuple(batch.schema.names))
        indexes = range(len(names)) if self._keeps_keys else self._values
        columns = [names[index] for index in indexes]
        cells = PandasCells(self._conf).of(batch)
        for row in zip(*cells, strict=True):
            # The types are inferred from the values, as in PySpark's worker.
            frame = pd.DataFrame([[row[index] for index in indexes]], columns=columns)
            yield tuple(row[index] for index in self._keys), frame

    def as_batches(self, results: list[tuple[int, Any]]) -> Iterator[Any]:
        import pandas as pd

        for group in self._with_equal_layout(results):
            merged = group[0][1] if len(group) == 1 else pd.concat([frame for _, frame in group], ignore_index=True)
            if len(group) > 1 and _mixes_types(merged):
                # Arrow would convert a number to the type of its neighbors.
                for index, frame in group:
                    yield self._as_batch([index] * len(frame), frame)
            else:
                yield self._as_batch([index for index, frame in group for _ in range(len(frame))], merged)

    def _with_equal_layout(self, results: list[tuple[int, Any]]) -> Iterator[list[tuple[int, Any]]]:
        """Groups consecutive frames with the same columns and types: one conversion costs as much as a hundred rows."""
        group: list[tuple[int, Any]] = []
        layout = None
        for index, frame in results:
            self._verify(frame)
            layout_of_frame = (tuple(frame.columns), tuple(frame.dtypes))
            if group and layout != layout_of_frame:
                yield group
                group = []
            layout = layout_of_frame
            group.append((index, frame))
        if group:
            yield group

    def _verify(self, frame: Any) -> None:
        import pandas as pd
        from pyspark.errors import PySparkValueError

        if not isinstance(frame, pd.DataFrame):
            raise PySparkValueError(
                f"handleInputRows and handleExpiredTimer must yield pandas.DataFrame, not {type(frame).__name__}."
            )

    def _as_batch(self, rows: list[int], frame: Any) -> Any:
        from pyspark.sql.conversion import PandasToArrowConversion

        converted = PandasToArrowConversion.convert(
            [frame],
            StructType([StructField("_0", self._type)]),
            timezone=self._conf.timezone,
            safecheck=self._conf.safecheck,
            arrow_cast=True,
            assign_cols_by_name=self._conf.assign_cols_by_name,
            int_to_decimal_coercion_enabled=self._conf.int_to_decimal_coercion_enabled,
        )
        return _with_indexes(converted.column(0), rows)


def _mixes_types(frame: Any) -> bool:
    columns = (frame.iloc[:, index] for index, kind in enumerate(frame.dtypes) if kind == "object")
    return any(len(set(map(type, column)) - {type(None)}) > 1 for column in columns)


@cache
def _names_in_pandas(columns: tuple[str, ...]) -> tuple[str, ...]:
    """The column names that PySpark's frames have, in which a name that is no identifier is replaced."""
    named: Any = namedtuple("Names", columns, rename=True)  # type: ignore[misc]
    return tuple(named._fields)


def _with_indexes(results: Any, indexes: list[int]) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([results, pa.array(indexes, type=pa.int32())], names=["_0", "_1"])
