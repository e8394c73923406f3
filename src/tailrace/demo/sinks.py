"""Where the demo's decisions go: a topic or, with an embedded server, a store that a service would read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace._kafka.cluster import Servers
from tailrace._process.console import working
from tailrace._spark import maven
from tailrace.demo.options import SinkName
from tailrace.demo.query import write_decisions
from tailrace.postgres import EmbeddedPostgres
from tailrace.redis import EmbeddedRedis

COLUMNS = ("number", "intended_ns", "card", "payments_this_minute", "spent_this_minute", "fraud", "decision")
TABLE = """
CREATE TABLE {name} (number bigint NOT NULL, intended_ns bigint NOT NULL, card text NOT NULL,
  payments_this_minute bigint NOT NULL, spent_this_minute double precision NOT NULL,
  fraud double precision NOT NULL, decision text NOT NULL);
CREATE INDEX ON {name} (number)
"""


class Sink(Protocol):
    """Each query has an output of its own there: `name`."""

    def write(self, decisions: DataFrame, name: str, checkpoint: Path) -> DataStreamWriter: ...

    def observed_by(self, name: str, rate: float, *, folds: bool) -> dict[str, Any]:
        """The arguments of a load test that reads the decisions."""


class KafkaSink:
    def __init__(self, cluster: Servers) -> None:
        self._cluster = cluster

    def write(self, decisions: DataFrame, name: str, checkpoint: Path) -> DataStreamWriter:
        return write_decisions(decisions, self._cluster, name, str(checkpoint))

    def observed_by(self, name: str, rate: float, *, folds: bool) -> dict[str, Any]:
        decoder = {"decode": "tailrace.demo.payments:DecisionDecoder", "decode_options": {"rate": rate, "folds": folds}}
        return {"output_topic": name, **decoder}


class PostgresqlSink:
    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server

    def write(self, decisions: DataFrame, name: str, checkpoint: Path) -> DataStreamWriter:
        table = _identifier(name)
        self._server.execute(TABLE.format(name=table))
        return (
            decisions.select(*COLUMNS)
            .writeStream.format("tailrace-postgresql")
            .option("url", self._server.url)
            .option("user", self._server.user)
            .option("passwordFile", self._server.password_file)
            .option("dbtable", table)
            .option("checkpointLocation", str(checkpoint))
            .outputMode("update")
            .queryName("fraud scoring")
        )

    def observed_by(self, name: str, rate: float, *, folds: bool) -> dict[str, Any]:
        options = {"socket_file": self._server.socket_file, "table": _identifier(name), "rate": rate}
        return {"reader": "tailrace.demo.readers:PostgresqlReader", "reader_options": options}


class RedisSink:
    def __init__(self, server: EmbeddedRedis) -> None:
        self._server = server

    def write(self, decisions: DataFrame, name: str, checkpoint: Path) -> DataStreamWriter:
        return (
            decisions.select(*COLUMNS)
            .writeStream.format("tailrace-redis")
            .option("url", self._server.url)
            .option("passwordFile", self._server.password_file)
            .option("structure", "stream")
            .option("key", _identifier(name))
            .option("checkpointLocation", str(checkpoint))
            .outputMode("update")
            .queryName("fraud scoring")
        )

    def observed_by(self, name: str, rate: float, *, folds: bool) -> dict[str, Any]:
        server = {"port": self._server.port, "user": self._server.user, "password": self._server.password}
        options = {"server": server, "key": _identifier(name), "rate": rate}
        return {"reader": "tailrace.demo.readers:RedisReader", "reader_options": options}


@contextmanager
def open_sink(name: SinkName, cluster: Servers) -> Iterator[Sink]:
    match name:
        case SinkName.KAFKA:
            yield KafkaSink(cluster)
        case SinkName.POSTGRESQL:
            maven.resolve(maven.POSTGRESQL_DRIVER)
            maven.resolve(maven.POSTGRESQL_SERVER)
            with working("Starting an embedded PostgreSQL"):
                postgres = EmbeddedPostgres().start()
            with postgres:
                yield PostgresqlSink(postgres)
        case SinkName.REDIS:
            with working("Starting an embedded Redis"):
                redis = EmbeddedRedis().start()
            with redis:
                yield RedisSink(redis)


def _identifier(name: str) -> str:
    return name.replace("-", "_")
