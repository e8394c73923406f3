"""Requests to any Kafka cluster: ping it, create topics, delete topics."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tailrace._kafka.cluster import Servers, client_settings
from tailrace._kafka.refusals import Reasons, refusal_of
from tailrace.errors import BrokerError

CLUSTER_DEFAULT = -1  # the cluster's default replication factor


class _Silent:
    """Drops librdkafka's log, which reports every refused connection while we wait for a broker."""

    def log(self, *_arguments: object) -> None:
        pass

    debug = info = warning = error = log


SILENT = _Silent()


def create_topics(
    bootstrap_servers: Servers, names: Iterable[str], *, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create topics and wait until every partition has a leader. An existing topic is an error."""
    admin = AdminClient(client_settings(bootstrap_servers))
    wanted = list(names)
    topics = [NewTopic(name, partitions, CLUSTER_DEFAULT, config=dict(config or {})) for name in wanted]
    for name, future in admin.create_topics(topics).items():
        try:
            future.result()
        except KafkaException as failure:
            raise refusal_of(failure, bootstrap_servers, name, "Create") or BrokerError(
                "TAILRACE_TOPIC_NOT_CREATED",
                f"the topic '{name}' could not be created on {bootstrap_servers}: {failure.args[0].str()}",
                "choose another name if it exists, or ask for the right to create topics.",
            ) from None
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if all(_has_leaders(admin, name, partitions) for name in wanted):
                return
        except KafkaException:
            continue
        time.sleep(0.05)
    raise BrokerError(
        "TAILRACE_TOPIC_NOT_CREATED",
        f"the topics {', '.join(wanted)} have no leaders on {bootstrap_servers} after 30 s.",
        "look at the broker's log.",
    )


def _has_leaders(admin: AdminClient, name: str, partitions: int) -> bool:
    # Only this topic: a cluster may have thousands.
    topic = admin.list_topics(name, timeout=10).topics.get(name)
    return topic is not None and [part.leader >= 0 for part in topic.partitions.values()] == [True] * partitions


def delete_topics(bootstrap_servers: Servers, names: Iterable[str]) -> list[str]:
    """Delete topics, and return the names of those that could not be deleted."""
    left = []
    admin = AdminClient(client_settings(bootstrap_servers, {"log_level": 0}), logger=SILENT)
    for name, future in admin.delete_topics(list(names), request_timeout=10).items():
        try:
            future.result(timeout=15)
        except (KafkaException, TimeoutError):
            left.append(name)
    return left


def require_broker(bootstrap_servers: Servers, *, timeout_s: float = 5) -> int:
    """Return the number of brokers that answer, or raise an error that names the address and the reason."""
    reasons = Reasons()
    settings = client_settings(bootstrap_servers, {"log_level": 0, "error_cb": reasons})
    admin = AdminClient(settings, logger=SILENT)
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return len(admin.list_topics(timeout=min(1.0, timeout_s)).brokers)
        except KafkaException as failure:
            # Wrong passwords and certificates are reported beside the answer, and long before the time is up.
            admin.poll(0)
            refused = reasons.refusal(bootstrap_servers) or refusal_of(failure, bootstrap_servers)
            if refused is not None:
                raise refused from None
            if time.monotonic() >= deadline:
                break
    raise BrokerError(
        "TAILRACE_BROKER_UNREACHABLE",
        f"no Kafka broker answers at {bootstrap_servers} within {timeout_s:g} s.",
        "check --bootstrap-servers, that the broker runs, and for a secured one security.protocol in --kafka-config; "
        "without the options, an embedded broker is started.",
    )
