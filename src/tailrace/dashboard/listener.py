"""The socket that the dashboard listens on."""

from __future__ import annotations

import errno
import socket

from tailrace.errors import TailraceError


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, so that the port is ours and known before anything else starts."""
    if not 0 <= port <= 65535:
        raise _port_unusable(host, port, "it is not a number from 0 to 65535")
    try:
        # An empty host would mean every address of the machine; that should not happen by an unset variable.
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM) if host else []
    except (OSError, ValueError):
        found = []
    if not found:
        raise _host_unknown(f"the host '{host}' has no address.")
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as reason:
        listener.close()
        if reason.errno == errno.EADDRINUSE:
            raise _port_taken(host, port) from None
        if reason.errno == errno.EADDRNOTAVAIL:
            raise _host_unknown(f"the host '{host}' is not this machine.") from None
        raise _port_unusable(host, port, str(reason.strerror)) from None
    return listener


def _port_taken(host: str, port: int) -> TailraceError:
    return TailraceError(
        "TAILRACE_PORT_TAKEN",
        f"{host}:{port} is in use by another program.",
        "choose another port, or 0: then the operating system picks a free one.",
    )


def _port_unusable(host: str, port: int, why: str) -> TailraceError:
    return TailraceError(
        "TAILRACE_PORT_UNUSABLE",
        f"port {port} on {host} cannot be used: {why}.",
        "choose a port from 1024 to 65535, or 0: then the operating system picks a free one.",
    )


def _host_unknown(problem: str) -> TailraceError:
    return TailraceError(
        "TAILRACE_HOST_UNKNOWN",
        problem,
        "name an address of this machine: 127.0.0.1 for this machine only, 0.0.0.0 for all that can reach it.",
    )
