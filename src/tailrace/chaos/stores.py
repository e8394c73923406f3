"""Stores that the built-in queries write to: an embedded server, its outputs, and every write that it has seen.

A table of PostgreSQL to which rows are appended, and a stream of Redis, show each row. Where a query updates a row for
each key, PostgreSQL has a trigger that notes each update, and Redis logs it in its append-only file.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

from tailrace._postgres.client import Connection
from tailrace._process.ports import HOST
from tailrace._spark import maven
from tailrace.chaos._redis_log import WriteLog
from tailrace.chaos.topics import Read
from tailrace.chaos.workloads import POSTGRESQL
from tailrace.errors import TailraceError
from tailrace.postgres import EmbeddedPostgres
from tailrace.redis import EmbeddedRedis

LOOK_EVERY_S = 0.05


class Server(Protocol):
    def start(self) -> object: ...

    def kill(self) -> None: ...

    def shut_down(self) -> None: ...

    @property
    def pid(self) -> int | None: ...


class Store(Protocol):
    """:ivar coalesces: whether updates of one key in a batch are written as one, the last."""

    port: int
    coalesces: bool

    @property
    def server(self) -> Server: ...

    def create(self, output: str, *, keyed: bool) -> None:
        """:param keyed: whether a row replaces the one with the same key."""

    def options(self, output: str, *, keyed: bool, port: int) -> dict[str, str]:
        """Of the sink. :param port: where the server is reached, which may be a proxy's."""

    def new_rows(self) -> Iterable[tuple[str, bytes]]:
        """Outputs and values that were written since the last call. Some may come again."""

    def writes(self, output: str) -> list[Read]:
        """Every write, those of a key in their order."""

    def last(self, output: str) -> list[Read]:
        """Of a keyed output: what it holds now."""

    def close(self) -> None: ...


# Rows are numbered by the table. The transaction tells what a reader may not have seen yet.
TABLE = """
CREATE TABLE {name} (position bigserial, transaction bigint DEFAULT pg_current_xact_id()::text::bigint,
  key text NOT NULL, value text NOT NULL);
CREATE INDEX ON {name} (transaction)
"""
KEYED_TABLE = """
CREATE TABLE {name} (key text PRIMARY KEY, value text NOT NULL);
CREATE FUNCTION {name}_note() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO {name}_writes (key, value) VALUES (NEW.key, NEW.value); RETURN NEW; END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION {name}_note()
"""


class PostgresqlStore:
    coalesces = True

    def __init__(self, server: EmbeddedPostgres) -> None:
        assert server.port is not None
        self.server = server
        self.port = server.port
        self._tables: dict[str, str] = {}
        self._seen: dict[str, int] = {}
        self._connection: Connection | None = None

    def create(self, output: str, *, keyed: bool) -> None:
        table = _identifier(output)
        writes = f"{table}_writes" if keyed else table
        self.server.execute(TABLE.format(name=writes))
        if keyed:
            self.server.execute(KEYED_TABLE.format(name=table))
        self._tables[output] = writes

    def options(self, output: str, *, keyed: bool, port: int) -> dict[str, str]:
        options = {
            "url": f"jdbc:postgresql://{HOST}:{port}/{self.server.database}",
            "user": self.server.user,
            "passwordFile": self.server.password_file,
            "dbtable": _identifier(output),
        }
        return options | {"keyColumns": "key"} if keyed else options

    def new_rows(self) -> Iterator[tuple[str, bytes]]:
        """A transaction that began before others may commit after them, so reading resumes at the oldest open one."""
        for output, table in self._tables.items():
            rows = self._run(
                "SELECT pg_snapshot_xmin(pg_current_snapshot()), value FROM (SELECT) once "  # noqa: S608
                f"LEFT JOIN {table} ON transaction >= {self._seen.get(output, 0)} ORDER BY position"
            )
            for oldest_open, value in rows:
                self._seen[output] = int(oldest_open or 0)
                if value is not None:
                    yield output, value.encode()

    def writes(self, output: str) -> list[Read]:
        return self._read(f"SELECT key, value FROM {self._tables[output]} ORDER BY position")  # noqa: S608

    def last(self, output: str) -> list[Read]:
        return self._read(f"SELECT key, value FROM {_identifier(output)}")  # noqa: S608

    def close(self) -> None:
        self._disconnect()

    def _read(self, sql: str) -> list[Read]:
        return [Read(0, (key or "").encode(), (value or "").encode()) for key, value in self.server.execute(sql)]

    def _run(self, sql: str) -> list[tuple[str | None, ...]]:
        try:
            if self._connection is None:
                self._connection = Connection(Path(self.server.socket_file), self.server.user, self.server.database)
            return self._connection.run(sql)
        except (OSError, TailraceError):
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class RedisStore:
    coalesces = False

    def __init__(self, server: EmbeddedRedis) -> None:
        assert server.port is not None
        self.server = server
        self.port = server.port
        folder = Path(server.execute("CONFIG", "GET", "dir")[1]) / server.execute("CONFIG", "GET", "appenddirname")[1]
        self._folder = folder
        self._live = WriteLog(folder)
        self._keyed: dict[str, bool] = {}

    def create(self, output: str, *, keyed: bool) -> None:
        self._keyed[output] = keyed

    def options(self, output: str, *, keyed: bool, port: int) -> dict[str, str]:
        server = {"url": f"redis://{self.server.user}@{HOST}:{port}/0", "passwordFile": self.server.password_file}
        key = f"{output}:{{key}}" if keyed else output
        return {**server, "structure": "hash" if keyed else "stream", "key": key}

    def new_rows(self) -> Iterator[tuple[str, bytes]]:
        for name, fields in self._live.read():
            output = name.partition(":")[0]
            if output in self._keyed:
                yield output, fields["value"].encode()

    def writes(self, output: str) -> list[Read]:
        if not self._keyed[output]:
            entries = self.server.execute("XRANGE", output, "-", "+")
            return [_row(dict(zip(fields[::2], fields[1::2], strict=True))) for _, fields in entries]
        updates = ((name.partition(":"), fields) for name, fields in WriteLog(self._folder).read())
        return [_row({"key": key, **fields}) for (of, _, key), fields in updates if of == output]

    def last(self, output: str) -> list[Read]:
        names = self.server.execute("KEYS", f"{output}:*")
        values = {name: self.server.execute("HGET", name, "value") for name in names}
        return [_row({"key": name.partition(":")[2], "value": value}) for name, value in values.items()]

    def close(self) -> None:
        pass


def _row(fields: Mapping[str, str]) -> Read:
    return Read(0, fields.get("key", "").encode(), fields.get("value", "").encode())


def _identifier(output: str) -> str:
    return output.replace("-", "_")


def open_store(name: str, stack: ExitStack) -> Store:
    store: Store
    if name == POSTGRESQL:
        store = PostgresqlStore(stack.enter_context(EmbeddedPostgres()))
    else:
        # Its log of writes is the history of its keys, so it must not be shortened.
        store = RedisStore(stack.enter_context(EmbeddedRedis(settings={"auto-aof-rewrite-percentage": "0"})))
    stack.callback(store.close)
    return store


def resolve_client(name: str) -> None:
    """What must be there before the driver starts, which a fault may delay."""
    if name == POSTGRESQL:
        maven.resolve(maven.POSTGRESQL_DRIVER)
        maven.resolve(maven.POSTGRESQL_SERVER)
    else:
        maven.resolve(maven.REDIS_CLIENT)


class StoreReader:
    """Reads what queries write to a store while it may be killed and stopped."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self) -> Iterator[tuple[str, bytes]]:
        time.sleep(LOOK_EVERY_S)
        # It is away, or is starting.
        with suppress(OSError, TailraceError):
            yield from self._store.new_rows()

    def close(self) -> None:
        pass
