"""What a processor over pandas gets does not depend on the rows that happen to share its batch."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType
from pyspark.util import PythonEvalType

from tests.helpers.tree import ROOT

KEY = StructType([StructField("key", StringType())])
RESULT = StructType([StructField("n", LongType())])

#: A key column, and columns whose conversion to pandas depends on nulls.
COLUMNS = {
    "key": pa.string(),
    "n": pa.int64(),
    "small": pa.int32(),
    "flag": pa.bool_(),
    "share": pa.float64(),
    "numbers": pa.list_(pa.int32()),
    "nested": pa.struct([("x", pa.int32()), ("flags", pa.list_(pa.bool_()))]),
    "counts": pa.map_(pa.string(), pa.int64()),
}
FULL: dict[str, Any] = {
    "key": "a",
    "n": 2**53 + 1,
    "small": 7,
    "flag": True,
    "share": 0.5,
    "numbers": [1, 2],
    "nested": {"x": 1, "flags": [True]},
    "counts": [("a", 1)],
}
HOLES: dict[str, Any] = {
    "key": "b",
    "n": None,
    "small": None,
    "flag": None,
    "share": None,
    "numbers": [1, None],
    "nested": {"x": None, "flags": [None]},
    "counts": [("a", None)],
}
EMPTY: dict[str, Any] = {**dict.fromkeys(COLUMNS), "key": "c"}


@pytest.fixture
def processor_task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Makes the worker's task over pandas; the processor's calls go to a function."""
    monkeypatch.syspath_prepend(str(ROOT / "jvm" / "worker"))
    from tailrace_worker import stateful

    with socket.socket(socket.AF_UNIX) as listener:
        address = str(tmp_path / "s")
        listener.bind(address)
        listener.listen()

        def make(eval_type: int, offsets: list[int], udf: Callable[..., Any]) -> Any:
            worker = SimpleNamespace(read_single_udf=lambda *_: (udf, offsets, RESULT))
            conf = SimpleNamespace(timezone="UTC", prefer_int_ext_dtype=False, get=lambda _key, default: default)
            state = SimpleNamespace(state_server_socket_port=address, grouping_key_schema=KEY)
            return stateful.ProcessorTask(worker, None, None, eval_type, conf, state)

        monkeypatch.setattr(stateful, "install_cached_state", lambda: None)
        yield make
    for name in [name for name in sys.modules if name.startswith("tailrace_worker")]:
        del sys.modules[name]


def batch_of(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=pa.schema(list(COLUMNS.items())))


def offsets_of(columns: int) -> list[int]:
    """PySpark's encoding: the length, one key, its index, and the indexes of the data."""
    return [columns + 2, 1, 0, *range(columns)]


def content(frame: pd.DataFrame) -> dict[str, tuple[str, str, str]]:
    """The type of each column, and the type and value of its cell; as texts, because NaN does not equal itself."""
    cells = {name: next(iter(frame[name])) for name in frame.columns}
    return {
        name: (str(frame[name].dtype), f"{type(cell).__name__} {getattr(cell, 'dtype', '')}", repr(cell))
        for name, cell in cells.items()
    }


def test_a_row_is_the_same_alone_and_among_others(processor_task: Callable[..., Any]) -> None:
    seen: list[tuple[Any, pd.DataFrame]] = []

    def udf(_client: Any, _mode: Any, key: Any, frames: Any) -> Iterator[Any]:
        seen.extend((key, frame) for frame in frames)
        return iter(())

    def frames_of(*rows: dict[str, Any]) -> list[dict[str, tuple[str, str, str]]]:
        seen.clear()
        eval_type = PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_UDF
        list(processor_task(eval_type, offsets_of(len(COLUMNS)), udf)._results(batch_of(*rows)))
        assert [key for key, _ in seen] == [(row["key"],) for row in rows]
        return [content(frame) for _, frame in seen]

    alone = [frames_of(row)[0] for row in (FULL, HOLES, EMPTY)]
    assert frames_of(FULL, HOLES, EMPTY) == alone
    assert frames_of(EMPTY, FULL, FULL, HOLES) == [alone[2], alone[0], alone[0], alone[1]]
    assert alone[0]["n"] == ("int64", "int ", str(2**53 + 1))
    assert alone[1]["n"] == ("float64", "float ", "nan")


def test_initial_state_and_data_in_one_batch_keep_their_types(processor_task: Callable[..., Any]) -> None:
    rows: list[Any] = []
    states: list[Any] = []

    def udf(_client: Any, _mode: Any, key: Any, frames: Any, initial: Any) -> Iterator[Any]:
        rows.extend((key, content(frame)) for frame in frames)
        states.extend((key, content(frame)) for frame in initial)
        return iter(())

    data = pa.array(
        [None, None, {"key": "a", "id": 1}, {"key": "b", "id": 2}], pa.struct({"key": pa.string(), "id": pa.int64()})
    )
    initial = pa.array(
        [{"key": "a", "start": 100}, {"key": "b", "start": 200}, None, None],
        pa.struct({"key": pa.string(), "start": pa.int32()}),
    )
    batch = pa.RecordBatch.from_arrays([data, initial], names=["inputData", "initState"])
    offsets = [*offsets_of(2), *offsets_of(2)]
    task = processor_task(PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_INIT_STATE_UDF, offsets, udf)
    list(task._results(batch))
    integer = "int64", "int "
    assert [(key, found["start"]) for key, found in states] == [
        (("a",), (*integer, "100")),
        (("b",), (*integer, "200")),
    ]
    assert [(key, found["id"]) for key, found in rows] == [(("a",), (*integer, "1")), (("b",), (*integer, "2"))]
