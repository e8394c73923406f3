"""Ports on this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterable

from tailrace.errors import PortTakenError

HOST = "127.0.0.1"


def free_port(*, other_than: Iterable[int] = ()) -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    return port if port not in other_than else free_port(other_than=other_than)


def refuse_taken_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise port_taken(port) from None


def port_taken(port: int) -> PortTakenError:
    return PortTakenError(
        "TAILRACE_PORT_TAKEN",
        f"port {port} on {HOST} is in use by another program.",
        "choose another port, or none: then the operating system picks a free one.",
    )
