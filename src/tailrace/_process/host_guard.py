"""Which names a server on this machine answers to."""

from __future__ import annotations

import ipaddress


class HostGuard:
    """Refuses requests for foreign names while a server listens only on the loopback address.

    A foreign page can point its own name to 127.0.0.1 (DNS rebinding) and read what is meant only for this machine.
    Its requests carry that name in the Host header; an address or `localhost` cannot be faked like that.
    """

    def __init__(self, host: str, address: str) -> None:
        """`host` as the user gave it, and the `address` that the server is bound to."""
        self._names = {"localhost", host.lower()}
        self._only_local = is_loopback(address)

    def refuses(self, host_header: str) -> bool:
        name = host_header.rpartition("]")[0].lstrip("[") or host_header.partition(":")[0]
        return self._only_local and name.lower() not in self._names and not is_address(name)


def refusal_of(host_header: str) -> str:
    return f"this is not the server of {host_header!r}"


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def is_wildcard(host: str) -> bool:
    return is_address(host) and ipaddress.ip_address(host).is_unspecified
