"""A worker's cached state equals the state server's, whatever is evicted and written in between."""

from __future__ import annotations

import random
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import serializers
from pyspark.sql.streaming.proto import StateMessage_pb2 as messages
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from tests.helpers.tree import ROOT

SERIALIZERS: Any = serializers
STEPS = 4000
BATCHED = "$tailrace.values"


class FakeServer(threading.Thread):
    """Spark's state server in a few lines: the state is a dictionary by variable and key."""

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(daemon=True)
        self._listener = listener
        self._pickle = SERIALIZERS.CPickleSerializer()
        self._key = b""
        self._requested: tuple[list[str], list[Any]] = ([], [])
        self.state: dict[tuple[str, bytes], Any] = {}
        self.requests = 0

    def run(self) -> None:
        connection, _ = self._listener.accept()
        stream = connection.makefile("rwb")
        while stream.read(4):
            request = messages.StateRequest()
            request.ParseFromString(stream.read(SERIALIZERS.read_int(stream)))
            self.requests += 1
            answer = self._answer(request).SerializeToString()
            SERIALIZERS.write_int(len(answer), stream)
            stream.write(answer)
            stream.flush()

    def _answer(self, request: Any) -> Any:
        if request.HasField("implicitGroupingKeyRequest"):
            self._key = request.implicitGroupingKeyRequest.setImplicitKey.key
            return messages.StateResponse()
        variable = request.stateVariableRequest
        kind = variable.WhichOneof("method")
        call = getattr(variable, kind)
        answer = getattr(self, kind)((call.stateName, self._key), call.WhichOneof("method"), call)
        return messages.StateResponse() if answer is None else answer

    def valueStateCall(self, place: Any, method: str, call: Any) -> Any:
        if call.stateName == BATCHED:
            return self._batched(call.valueStateUpdate.value if method == "valueStateUpdate" else None)
        if method == "valueStateUpdate":
            self.state[place] = call.valueStateUpdate.value
        elif method == "clear":
            self.state.pop(place, None)
        else:
            return messages.StateResponse(value=self.state.get(place, b""))
        return None

    def _batched(self, message: bytes | None) -> Any:
        dumps, loads = self._pickle.dumps, self._pickle.loads
        if message is None:
            names, keys = self._requested
            found = [tuple(self.state.get((name, dumps(key)), None) for name in names) for key in keys]
            values = [tuple(None if value is None else tuple(loads(value)) for value in one) for one in found]
            return messages.StateResponse(value=dumps((dumps(values),)))
        match loads(loads(message)[0]):
            case name, keys, values:
                for key, value in zip(keys, values, strict=True):
                    self._set((name, dumps(key)), None if value is None else dumps(value))
            case names, keys:
                self._requested = names, keys
        return None

    def _set(self, place: tuple[str, bytes], value: bytes | None) -> None:
        if value is None:
            self.state.pop(place, None)
        else:
            self.state[place] = value

    def listStateCall(self, place: Any, method: str, call: Any) -> Any:
        if method == "listStatePut":
            self.state[place] = list(call.listStatePut.value)
        elif method == "appendList":
            self.state[place] = [*self.state.get(place, []), *call.appendList.value]
        elif method == "clear":
            self.state.pop(place, None)
        elif method == "exists":
            return messages.StateResponse(statusCode=0 if self.state.get(place) else 2)
        else:
            values = self.state.get(place, [])
            return messages.StateResponseWithListGet(statusCode=0 if values else 2, value=values)
        return None

    def mapStateCall(self, place: Any, method: str, call: Any) -> Any:
        entries = self.state.setdefault(place, {})
        if method == "updateValue":
            entries[call.updateValue.userKey] = call.updateValue.value
        elif method == "removeKey":
            entries.pop(call.removeKey.userKey, None)
        elif method == "clear":
            entries.clear()
        elif method == "getValue":
            return messages.StateResponse(value=entries.get(call.getValue.userKey, b""))
        elif method == "exists":
            return messages.StateResponse(statusCode=0 if entries else 2)
        else:
            # In an order of its own.
            pairs = [messages.KeyAndValuePair(key=key, value=entries[key]) for key in sorted(entries)]
            return messages.StateResponseWithMapIterator(statusCode=0 if pairs else 2, kvPair=pairs)
        return None


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The worker's classes, with limits so small that they are reached all the time."""
    monkeypatch.syspath_prepend(str(ROOT / "jvm" / "worker"))
    from tailrace_worker import cached_list, cached_map, cached_value, cached_variable, key_cache, state_client

    limits = {
        cached_variable: {"MAX_ENTRIES": 6, "MAX_CELL_BYTES": 700},
        key_cache: {"MAX_KEYS": 5, "MAX_BYTES": 6000, "MEASURED_AFTER_KEYS": 3},
        state_client: {"MAX_UNWRITTEN": 3, "WRITTEN_AFTER_BATCH": 1, "MAX_KEYS_PER_MESSAGE": 2},
    }
    for module, values in limits.items():
        for name, limit in values.items():
            monkeypatch.setattr(module, name, limit)
    yield SimpleNamespace(
        Client=state_client.EpochStateClient,
        Value=cached_value.CachedValue,
        List=cached_list.CachedList,
        Map=cached_map.CachedMap,
    )
    for name in [name for name in sys.modules if name.startswith("tailrace_worker")]:
        del sys.modules[name]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[FakeServer, str]]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        fake = FakeServer(listener)
        fake.start()
        yield fake, str(tmp_path / "s")


def schema_of(name: str, kind: DataType, *, nullable: bool = True) -> StructType:
    return StructType([StructField(name, kind, nullable)])


KEY = schema_of("key", StringType())
NUMBER = schema_of("n", LongType())


@pytest.mark.parametrize("seed", range(3))
def test_random_calls_see_what_a_dictionary_would(worker: Any, server: tuple[FakeServer, str], seed: int) -> None:
    fake, address = server
    client = worker.Client(address, KEY)
    value = worker.Value(client, NUMBER)
    items = worker.List(client, NUMBER)
    entries = worker.Map(client, schema_of("k", StringType()), NUMBER)
    chance = random.Random(seed)
    model: dict[str, tuple[list[int | None], list[int], dict[str, int]]] = {}
    for step in range(STEPS):
        if step == 0 or chance.random() < 0.3:
            # A key stays for a while, so its cached state is used.
            key = f"key {chance.randrange(12)}"
        if step % 7 == 0:
            client.batch_is_done(has_time=chance.random() < 0.5)
            client.read_ahead([(f"key {chance.randrange(12)}",) for _ in range(4)])
        client.set_implicit_key((key,))
        one, many, by_name = model.setdefault(key, ([None], [], {}))
        n, name = chance.randrange(100), chance.choice("abcdefghij")
        match chance.randrange(14):
            case 0 | 1:
                value.update("v", (n,))
                one[0] = n
            case 2:
                value.clear("v")
                one[0] = None
            case 3 | 4:
                assert value.get("v") == (None if one[0] is None else (one[0],))
                assert value.exists("v") == (one[0] is not None)
            case 5 | 6:
                items.append_value("l", (n,))
                many.append(n)
            case 7:
                items.put("l", [(n,), (n + 1,)])
                many[:] = [n, n + 1]
            case 8:
                if chance.random() < 0.3:
                    items.clear("l")
                    many.clear()
                assert items.exists("l") == bool(many)
            case 9:
                assert list(items.iterate("l")) == [(item,) for item in many]
            case 10:
                entries.update_value("m", (name,), (n,))
                by_name[name] = n
            case 11:
                entries.remove_key("m", (name,))
                by_name.pop(name, None)
            case 12:
                found = entries.get_value("m", (name,))
                assert (None if found is None else found.n) == by_name.get(name)
                assert entries.contains_key("m", (name,)) == (name in by_name)
                assert entries.exists("m") == bool(by_name)
            case _:
                if chance.random() < 0.2:
                    entries.clear("m")
                    by_name.clear()
                assert dict(entries.iterate_pairs("m")) == {(k,): (v,) for k, v in by_name.items()}
    client._write_all()
    loads = SERIALIZERS.CPickleSerializer().loads
    stored = {
        (variable, loads(key)[0]): content
        for (variable, key), content in fake.state.items()
        if content not in (b"", [], {})
    }
    assert {key: loads(content)[0] for (name, key), content in stored.items() if name == "v"} == {
        key: one[0] for key, (one, _, _) in model.items() if one[0] is not None
    }
    assert {key: [loads(item)[0] for item in content] for (name, key), content in stored.items() if name == "l"} == {
        key: many for key, (_, many, _) in model.items() if many
    }
    assert {
        key: {loads(k)[0]: loads(v)[0] for k, v in content.items()}
        for (name, key), content in stored.items()
        if name == "m"
    } == {key: by_name for key, (_, _, by_name) in model.items() if by_name}


def test_calls_do_not_go_to_the_server_one_by_one(worker: Any, server: tuple[FakeServer, str]) -> None:
    fake, address = server
    client = worker.Client(address, KEY)
    value = worker.Value(client, NUMBER)
    for n in range(1000):
        client.set_implicit_key((f"key {n % 2}",))
        value.update("v", (((value.get("v") or (0,))[0]) + 1,))
    client._write_all()
    assert sorted(SERIALIZERS.CPickleSerializer().loads(content)[0] for content in fake.state.values()) == [500, 500]
    assert fake.requests <= 8


def test_values_of_many_keys_are_read_and_written_in_batches(worker: Any, server: tuple[FakeServer, str]) -> None:
    fake, address = server
    client = worker.Client(address, KEY)
    value = worker.Value(client, NUMBER)
    for batch in range(15):
        keys = [(f"key {4 * (batch % 5) + n}",) for n in range(4)]
        client.read_ahead(keys)
        for key in keys:
            client.set_implicit_key(key)
            value.update("v", (((value.get("v") or (0,))[0]) + 1,))
        client.batch_is_done(has_time=False)
    client._write_all()
    assert [SERIALIZERS.CPickleSerializer().loads(content)[0] for content in fake.state.values()] == [3] * 20
    # One by one, these would be 60 keys sent twice, 60 values read and 60 written. The first batch reads each value
    # alone: the client does not know yet that the processor reads them.
    assert fake.requests <= 8 + 15 * (4 + 3)


def cached_characters(client: Any) -> int:
    """The length of all strings in the cache."""

    def values_in(cell: Any) -> Any:
        if isinstance(cell, tuple):
            return [cell]
        return cell.values.values() if isinstance(cell.values, dict) else cell.values or cell.appended

    states = client._cache._states.values()
    return sum(len(value[0]) for state in states for cell in state.cells.values() for value in values_in(cell))


@pytest.mark.parametrize("kind", ["value", "list", "map"])
def test_the_cache_is_bounded_in_bytes(
    worker: Any, server: tuple[FakeServer, str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from tailrace_worker import cached_variable, key_cache, state_client

    monkeypatch.setattr(key_cache, "MAX_KEYS", 20_000)
    monkeypatch.setattr(key_cache, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(cached_variable, "MAX_CELL_BYTES", 100_000)
    monkeypatch.setattr(state_client, "MAX_UNWRITTEN", 8000)
    _, address = server
    client = worker.Client(address, KEY)
    text = schema_of("s", StringType())
    value, items, entries = worker.Value(client, text), worker.List(client, text), worker.Map(client, NUMBER, text)
    most = 0
    for n in range(400):
        client.set_implicit_key((f"key {n}",))
        for part in range(5):
            # All in one batch: the cache must not wait for its end.
            if kind == "value":
                value.update("v", ("x" * 5000 * (part + 1),))
            elif kind == "list":
                items.append_value("v", ("x" * 5000,))
            else:
                entries.update_value("v", (part,), ("x" * 5000,))
        most = max(most, cached_characters(client))
    assert (1 << 19) < most < 1.3 * (1 << 20)
    # And a value that is too large by itself is not cached at all.
    client.set_implicit_key(("large",))
    if kind == "value":
        value.update("v", ("x" * 200_000,))
    elif kind == "list":
        items.put("v", [("x" * 200_000,)])
    else:
        entries.update_value("v", (1,), ("x" * 200_000,))
    assert "v" not in client.current.cells
    client._write_all()


@pytest.mark.parametrize(
    ("schema", "written", "comes_back"),
    [
        (NUMBER, (1,), True),
        (schema_of("n", IntegerType()), (2**31,), False),
        (schema_of("n", DoubleType()), (1,), False),
        (schema_of("n", DoubleType()), (1.0,), True),
        (NUMBER, (True,), False),
        (NUMBER, ("1",), False),
        (NUMBER, (1, 2), False),
        (NUMBER, [1], True),
        (schema_of("n", FloatType()), (0.1,), False),
        (schema_of("n", DecimalType(5, 2)), (1,), False),
        (schema_of("s", StringType()), ("größer",), True),
        (schema_of("s", StringType()), ("\ud800",), False),
        (schema_of("a", ArrayType(IntegerType())), ([1],), False),
        (NUMBER, (None,), True),
        (schema_of("n", LongType(), nullable=False), (None,), False),
    ],
)
def test_only_values_that_come_back_unchanged_are_cached(
    worker: Any, schema: StructType, written: Any, comes_back: bool
) -> None:
    from tailrace_worker.exact_values import ExactValues, InexactError

    exact = ExactValues(schema)
    if comes_back:
        assert exact.of(written) == tuple(written)
    else:
        with pytest.raises(InexactError):
            exact.of(written)
