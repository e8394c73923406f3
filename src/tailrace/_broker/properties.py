"""The broker's configuration file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tailrace._process.ports import HOST


@dataclass(frozen=True)
class Listener:
    """A port that the broker listens on, and the one that it advertises to its clients."""

    name: str
    port: int
    advertised_port: int


def write_properties(folder: Path, listeners: list[Listener], controller_port: int) -> None:
    properties_file(folder).write_text(
        _server_properties(folder / "data", listeners, controller_port), encoding="utf-8"
    )


def properties_file(folder: Path) -> Path:
    return folder / "server.properties"


def _server_properties(data: Path, listeners: list[Listener], controller_port: int) -> str:
    bound = [f"{listener.name}://{HOST}:{listener.port}" for listener in listeners]
    advertised = [f"{listener.name}://{HOST}:{listener.advertised_port}" for listener in listeners]
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": ",".join([*bound, f"CONTROLLER://{HOST}:{controller_port}"]),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": ",".join(
            f"{name}:PLAINTEXT" for name in [*(listener.name for listener in listeners), "CONTROLLER"]
        ),
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
    return "".join(f"{key}={value}\n" for key, value in settings.items())
