"""Requests to any Kafka cluster: ping it, create topics, delete topics."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tailrace.errors import BrokerError

CLUSTER_DEFAULT = -1  # the cluster's default replication factor


class _Silent:
    """Drops librdkafka's log, which reports every refused connection while we wait for a broker."""

    def log(self, *_arguments: object) -> None:
        pass

    debug = info = warning = error = log


SILENT = _Silent()


def create_topics(
    bootstrap_servers: str, names: Iterable[str], *, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create topics and wait until every partition has a leader. An existing topic is an error."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    wanted = list(names)
    topics = [NewTopic(name, partitions, CLUSTER_DEFAULT, config=dict(config or {})) for name in wanted]
    for name, future in admin.create_topics(topics).items():
        try:
            future.result()
        except KafkaException as failure:
            raise BrokerError(
                "TAILRACE_TOPIC_NOT_CREATED",
                f"the topic '{name}' could not be created on {bootstrap_servers}: {failure.args[0].str()}",
                "choose another name if it exists, or ask for the right to create topics.",
            ) from None
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            found = admin.list_topics(timeout=10).topics
        except KafkaException:
            continue
        described = [found[name].partitions.values() for name in wanted if name in found]
        if len(described) == len(wanted) and all(p.leader >= 0 for parts in described for p in parts):
            return
        time.sleep(0.05)
    raise BrokerError(
        "TAILRACE_TOPIC_NOT_CREATED",
        f"the topics {', '.join(wanted)} have no leaders on {bootstrap_servers} after 30 s.",
        "look at the broker's log.",
    )


def delete_topics(bootstrap_servers: str, names: Iterable[str]) -> list[str]:
    """Delete topics, and return the names of those that could not be deleted."""
    left = []
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0}, logger=SILENT)
    for name, future in admin.delete_topics(list(names), request_timeout=10).items():
        try:
            future.result(timeout=15)
        except (KafkaException, TimeoutError):
            left.append(name)
    return left


def require_broker(bootstrap_servers: str, *, timeout_s: float = 5) -> int:
    """Return the number of brokers that answer, or raise an error that names the address."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0}, logger=SILENT)
    try:
        return len(admin.list_topics(timeout=timeout_s).brokers)
    except KafkaException:
        raise BrokerError(
            "TAILRACE_BROKER_UNREACHABLE",
            f"no Kafka broker answers at {bootstrap_servers} within {timeout_s:g} s.",
            "check --bootstrap-servers and that the broker runs; without the option an embedded broker is started.",
        ) from None
