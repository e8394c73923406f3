"""A source whose rows come from the test."""

from __future__ import annotations

import pickle
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType, _make_type_verifier

from tailrace.errors import ConfigurationError


class Source:
    """A stream whose rows the test provides: `rows` is its DataFrame."""

    def __init__(self, spark: SparkSession, schema: StructType, partitions: int, jvm_source: Any) -> None:
        self._schema = schema
        self._partitions = partitions
        self._jvm_source = jvm_source
        self.rows = DataFrame(jvm_source.rows(), spark)

    def add(self, *rows: Any, partition: int = 0) -> None:
        """Add rows, as `createDataFrame` takes them, in this order. Real-time queries get them at once."""
        if not 0 <= partition < self._partitions:
            raise ConfigurationError(
                "TAILRACE_TEST_MISUSED",
                f"there is no partition {partition}: the source has {self._partitions}.",
                "ask for more: test.source(schema, partitions=…).",
            )
        verify = _make_type_verifier(self._schema)
        for row in rows:
            verify(row)
        self._jvm_source.add(partition, pickle.dumps([self._schema.toInternal(row) for row in rows], protocol=4))
