"""Clients that begin a request and do not go on."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager

BEGUN = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "


@contextmanager
def half_open(port: int, count: int, begun: bytes = BEGUN) -> Iterator[list[socket.socket]]:
    """Connections on which a part of a request was sent; the server may close them meanwhile."""
    clients: list[socket.socket] = []
    try:
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", port), timeout=60)
            clients.append(client)
            with contextlib.suppress(OSError):
                client.sendall(begun)
        yield clients
    finally:
        for client in clients:
            client.close()


def is_closed(client: socket.socket) -> bool:
    """Whether the other side has closed it; an answer that it sent before does not count as open."""
    client.setblocking(False)
    try:
        while piece := client.recv(65_536):
            assert piece
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
