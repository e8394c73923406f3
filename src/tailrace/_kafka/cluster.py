"""`KafkaCluster`: where a cluster is, and what its clients must say to be let in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tailrace._kafka.java_properties import bad_config, read_file
from tailrace._kafka.librdkafka import translate

# What belongs to one kind of client, and is set where that client is made.
_FOR_ANY_CLIENT = ("bootstrap.", "security.", "sasl.", "ssl.", "client.", "metadata.", "reconnect.", "connections.")


@dataclass(frozen=True)
class KafkaCluster:
    """A Kafka cluster: its address, and the properties with which clients reach it.

        cluster = KafkaCluster.from_file("client.properties")
        create_topics(cluster, ["payments"])
        spark.readStream.format("kafka").options(**cluster.spark_options())

    Everything that takes bootstrap servers also takes a cluster. Its properties are not printed: passwords are among
    them.

    :param properties: as Kafka's Java clients have them, such as `security.protocol` and `sasl.jaas.config`.
    """

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    @classmethod
    def from_file(cls, file: str | Path, bootstrap_servers: str | None = None) -> KafkaCluster:
        """Read a file of client properties; `bootstrap_servers` replaces the file's own."""
        found = read_file(Path(file))
        servers = bootstrap_servers or found.get("bootstrap.servers")
        if not servers:
            raise bad_config(
                f"{file} does not say where the cluster is.", "add bootstrap.servers, or name --bootstrap-servers."
            )
        kept = {key: value for key, value in found.items() if key.startswith(_FOR_ANY_CLIENT)}
        made = cls(servers, {**kept, "bootstrap.servers": servers})
        # What is wrong with it is told here, and not by the first client.
        made.client_settings()
        return made

    def client_settings(self) -> dict[str, str]:
        """For clients of confluent-kafka."""
        return translate(self.properties) | {"bootstrap.servers": self.bootstrap_servers}

    def spark_options(self) -> dict[str, str]:
        """For a source or a sink of a query."""
        return {f"kafka.{key}": value for key, value in self._all().items()}

    def _all(self) -> dict[str, str]:
        return {**self.properties, "bootstrap.servers": self.bootstrap_servers}

    def to_dict(self) -> dict[str, str]:
        """The properties, passwords included."""
        return self._all()

    def __str__(self) -> str:
        return self.bootstrap_servers


Servers = str | KafkaCluster


def as_cluster(servers: Servers) -> KafkaCluster:
    return servers if isinstance(servers, KafkaCluster) else KafkaCluster(servers)


def cluster_from(properties: Mapping[str, str]) -> KafkaCluster:
    """The reverse of `to_dict`."""
    return KafkaCluster(properties["bootstrap.servers"], properties)


def client_settings(servers: Servers, own: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Settings of a client of confluent-kafka: how to reach the cluster, and what this client wants."""
    reach: Mapping[str, Any] = {"bootstrap.servers": servers}
    return {**(servers.client_settings() if isinstance(servers, KafkaCluster) else reach), **(own or {})}


def cluster_of(bootstrap_servers: str | None, kafka_config: Path | None) -> Servers | None:
    """From the options of a command: `--bootstrap-servers` and `--kafka-config`."""
    if kafka_config is None:
        return bootstrap_servers
    return KafkaCluster.from_file(kafka_config, bootstrap_servers)
