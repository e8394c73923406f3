"""Readers of the demo's decisions in a store, for the load test's observer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tailrace._postgres.client import Connection
from tailrace._redis import client as redis_client
from tailrace.demo.payments import DecisionDecoder
from tailrace.postgres import EmbeddedPostgres


class PostgresqlReader:
    def __init__(self, socket_file: str, table: str, rate: float) -> None:
        self._connection = Connection(Path(socket_file), EmbeddedPostgres.user, EmbeddedPostgres.database)
        self._table = table
        self._decode = DecisionDecoder(rate, folds=False)
        self._first_missing = 0
        # Rows are appended, so a duplicate is another row.
        self._seen: set[tuple[int, str | None]] = set()

    def read(self) -> Iterator[int]:
        rows = self._connection.run(
            f"SELECT number, ctid, to_json(decided) FROM {self._table} decided "  # noqa: S608
            f"WHERE number >= {self._first_missing} ORDER BY number"
        )
        for number_text, place, row in rows:
            number = int(number_text or 0)
            if (number, place) not in self._seen:
                self._seen.add((number, place))
                yield from (answered for answered, _ in self._decode(None, (row or "").encode()))
        numbers = {number for number, _ in self._seen}
        while self._first_missing in numbers:
            self._first_missing += 1
        # Those before it are not read again, so keep only what will be.
        self._seen = {one for one in self._seen if one[0] >= self._first_missing}

    def close(self) -> None:
        self._connection.close()


class RedisReader:
    def __init__(self, server: dict[str, Any], key: str, rate: float) -> None:
        self._server = server
        self._key = key
        self._decode = DecisionDecoder(rate, folds=False)
        self._last = "-"

    def read(self) -> Iterator[int]:
        for entry, fields in redis_client.run(
            **self._server, command=("XRANGE", self._key, self._last, "+", "COUNT", 1000)
        ):
            self._last = f"({entry}"
            row = json.dumps(dict(zip(fields[::2], fields[1::2], strict=True))).encode()
            yield from (answered for answered, _ in self._decode(None, row))

    def close(self) -> None:
        pass
