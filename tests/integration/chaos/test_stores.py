"""What the harness reads from a store: each write once and in order, while the server is killed and started again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tailrace import EmbeddedPostgres, EmbeddedRedis
from tailrace._postgres.client import Connection
from tailrace._process.process_table import with_descendants
from tailrace.chaos._redis_log import WriteLog
from tailrace.chaos.stores import PostgresqlStore, RedisStore, StoreReader, open_store
from tailrace.chaos.workloads import REDIS

WRITE = "for at = 1, #ARGV, 2 do redis.call('HSET', KEYS[1] .. ARGV[at], 'value', ARGV[at + 1]) end"


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisStore]:
    with ExitStack() as stack:
        store = open_store(REDIS, stack)
        assert isinstance(store, RedisStore)
        yield store


def values(rows: list[tuple[str, bytes]], output: str) -> list[bytes]:
    return [value for name, value in rows if name == output]


def test_appended_rows_of_postgresql(postgres: EmbeddedPostgres) -> None:
    store = PostgresqlStore(postgres)
    store.create("rows-0", keyed=False)
    with closing(store), closing(connection(postgres)) as late, closing(connection(postgres)) as other:
        late.run("BEGIN")
        late.run("INSERT INTO rows_0 (key, value) VALUES ('a', '1')")
        other.run("INSERT INTO rows_0 (key, value) VALUES ('b', '2'), ('b', '3')")
        assert values(list(store.new_rows()), "rows-0") == [b"2", b"3"]
        late.run("COMMIT")
        assert b"1" in values(list(store.new_rows()), "rows-0"), "its position is before those that were read"
        assert values(list(store.new_rows()), "rows-0") == []
        other.run("INSERT INTO rows_0 (key, value) VALUES ('b', '2')")
        assert [(row.key, row.value) for row in store.writes("rows-0")] == [
            (b"a", b"1"),
            (b"b", b"2"),
            (b"b", b"3"),
            (b"b", b"2"),
        ]


def test_updates_of_postgresql(postgres: EmbeddedPostgres) -> None:
    store = PostgresqlStore(postgres)
    store.create("totals-0", keyed=True)
    upsert = "INSERT INTO totals_0 VALUES ('a', '{}') ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value"
    with closing(store):
        for value in (1, 2, 2):
            postgres.execute(upsert.format(value))
        assert values(list(store.new_rows()), "totals-0") == [b"1", b"2", b"2"]
        assert [row.value for row in store.writes("totals-0")] == [b"1", b"2", b"2"]
        assert [(row.key, row.value) for row in store.last("totals-0")] == [(b"a", b"2")]
    assert store.options("totals-0", keyed=True, port=5)["keyColumns"] == "key"


def test_the_processes_of_a_server(postgres: EmbeddedPostgres) -> None:
    """PostgreSQL gives each connection a process, in a session of its own."""
    assert postgres.pid is not None
    with closing(connection(postgres)) as one:
        [[pid]] = one.run("SELECT pg_backend_pid()")
        assert {postgres.pid, int(pid or 0)} <= {process.pid for process in with_descendants(postgres.pid)}


def test_entries_of_a_redis_stream(redis: RedisStore) -> None:
    redis.create("rows-1", keyed=False)
    for key, value in (("a", "1"), ("b", "2"), ("a", "1")):
        redis.server.execute("XADD", "rows-1", "*", "key", key, "value", value)
    assert values(list(redis.new_rows()), "rows-1") == [b"1", b"2", b"1"]
    assert list(redis.new_rows()) == []
    assert [(row.key, row.value) for row in redis.writes("rows-1")] == [(b"a", b"1"), (b"b", b"2"), (b"a", b"1")]


def test_updates_of_redis_survive_a_kill(redis: RedisStore) -> None:
    redis.create("totals-1", keyed=True)
    reader = StoreReader(redis)
    redis.server.execute("EVAL", WRITE, 1, "totals-1:", "a", "1", "b", "5")
    assert values(list(reader.read()), "totals-1") == [b"1", b"5"]
    redis.server.kill()
    redis.server.start()
    redis.server.execute("EVAL", WRITE, 1, "totals-1:", "a", "2", "a", "2")
    assert values(list(reader.read()), "totals-1") == [b"2", b"2"]
    writes = [(row.key, row.value) for row in redis.writes("totals-1")]
    assert writes == [(b"a", b"1"), (b"b", b"5"), (b"a", b"2"), (b"a", b"2")]
    assert sorted((row.key, row.value) for row in redis.last("totals-1")) == [(b"a", b"2"), (b"b", b"5")]


def test_half_a_script_is_not_read(tmp_path: Path) -> None:
    """Redis removes it when it starts again."""
    with EmbeddedRedis() as server:
        folder = Path(server.execute("CONFIG", "GET", "dir")[1]) / "appendonlydir"
        server.execute("EVAL", WRITE, 1, "t:", "a", "1", "b", "2")
        server.shut_down()
        [whole] = [file.read_bytes() for file in folder.glob("*.incr.aof")]
    written = tmp_path / "appendonly.aof.1.incr.aof"
    log = WriteLog(tmp_path)
    for end in range(0, len(whole), 7):
        written.write_bytes(whole[:end])
        assert list(log.read()) == []
    written.write_bytes(whole)
    assert list(log.read()) == [("t:a", {"value": "1"}), ("t:b", {"value": "2"})]


def connection(postgres: EmbeddedPostgres) -> Connection:
    return Connection(Path(postgres.socket_file), postgres.user, postgres.database)
