"""The broker's configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tailrace._process.paths import write_private
from tailrace._process.ports import HOST


@dataclass(frozen=True)
class Listener:
    """A port that the broker listens on, and the one that it advertises to its clients."""

    name: str
    port: int
    advertised_port: int
    protocol: str = "PLAINTEXT"


def write_properties(
    folder: Path,
    listeners: list[Listener],
    controller_port: int,
    *,
    internal: str | None = None,
    security: Mapping[str, str] | None = None,
) -> None:
    """:param internal: the listener of the broker's own requests, the first one by default
    :param security: settings of a secured broker, whose controller accepts only the broker's own certificate
    """
    settings = _server_settings(folder / "data", listeners, controller_port, "SSL" if security else "PLAINTEXT")
    if internal is not None:
        settings["inter.broker.listener.name"] = internal
    settings |= security or {}
    # Passwords are among them.
    write_private(properties_file(folder), "".join(f"{key}={value}\n" for key, value in settings.items()))


def properties_file(folder: Path) -> Path:
    return folder / "server.properties"


def _server_settings(
    data: Path, listeners: list[Listener], controller_port: int, controller_protocol: str
) -> dict[str, str]:
    bound = [f"{listener.name}://{HOST}:{listener.port}" for listener in listeners]
    advertised = [f"{listener.name}://{HOST}:{listener.advertised_port}" for listener in listeners]
    protocols = [*((listener.name, listener.protocol) for listener in listeners), ("CONTROLLER", controller_protocol)]
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": ",".join([*bound, f"CONTROLLER://{HOST}:{controller_port}"]),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols),
        "inter.broker.listener.name": listeners[0].name,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "log.dirs": str(data),
        # One node: every internal topic has one replica, and few partitions for a fast start.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        # A mistyped topic name should be an error, not a new topic.
        "auto.create.topics.enable": "false",
    }
