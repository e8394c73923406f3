"""Converts rows to pandas so that no row depends on the rows that share its batch.

PySpark converts whole columns: in a column of integers, one null turns all others into floats. Which rows share a batch
is chance in Real-Time Mode, so each cell is converted as if its row were the only one.
"""

from __future__ import annotations

from typing import Any

#: What PySpark makes of a null integer.
_NULL_INTEGER = float("nan")


class PandasCells:
    """Converts the rows of a batch with the settings of a query."""

    def __init__(self, conf: Any) -> None:
        self._conf = conf

    def of(self, batch: Any) -> list[list[Any]]:
        """The cells of each column."""
        import pyarrow as pa

        cells = []
        for index, column in enumerate(batch.columns):
            if pa.types.is_integer(column.type) and column.null_count and not self._conf.prefer_int_ext_dtype:
                cells.append([_NULL_INTEGER if value is None else value for value in column.to_pylist()])
            elif pa.types.is_nested(column.type) and _mixes_nulls(column):
                one_by_one = [batch.select([index]).slice(row, 1) for row in range(batch.num_rows)]
                cells.append([cell for one in one_by_one for cell in self._converted(one)])
            else:
                cells.append(self._converted(batch.select([index])))
        return cells

    def _converted(self, column: Any) -> list[Any]:
        from pyspark.sql.conversion import ArrowBatchTransformer

        [series] = ArrowBatchTransformer.to_pandas(
            column, timezone=self._conf.timezone, prefer_int_ext_dtype=self._conf.prefer_int_ext_dtype
        )
        return list(series)


def _mixes_nulls(column: Any) -> bool:
    """True if a null of one row would change the type of the values of another."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_struct(kind):
        return any(map(_mixes_nulls, column.flatten()))
    if pa.types.is_map(kind):
        return _mixes_nulls(column.keys) or _mixes_nulls(column.items)
    if pa.types.is_nested(kind):
        return _mixes_nulls(column.flatten())
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind)) and bool(column.null_count)
