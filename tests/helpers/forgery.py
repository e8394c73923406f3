"""Records with the headers of `tailrace-kafka`, as somebody else would write them to its topic."""

from __future__ import annotations

import hmac
import json
import struct
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Message, Producer

Headers = list[tuple[str, bytes | None]]


def secret_of(checkpoint: Path) -> bytes:
    """The secret that only the query should know."""
    _version, content = (checkpoint / "tailrace-sink" / "private" / "secret").read_text().split("\n")
    return bytes.fromhex(json.loads(content)["secret"])


def sealed(secret: bytes, topic: str, value: bytes | None, headers: Headers, *, key: bytes | None = None) -> Headers:
    """The headers with the code of the record, which names no partition."""
    code = hmac.digest(secret, content_of(topic, key, value, headers), "sha256")[:16].hex()
    return [*headers, ("tailrace-mac", code.encode())]


def content_of(topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    """What is hashed of a record that names no partition."""
    content = _part(topic.encode()) + _number(-1) + _part(key) + _part(value) + _number(len(headers))
    return content + b"".join(_part(name.encode()) + _part(text) for name, text in headers)


def _part(content: bytes | None) -> bytes:
    return _number(-1) if content is None else _number(len(content)) + content


def _number(value: int) -> bytes:
    return struct.pack(">i", value)


@dataclass
class Forger:
    """Writes to the query's topic what the query would write, or something like it."""

    servers: str
    topic: str
    query: str

    def __post_init__(self) -> None:
        self._producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 0})

    def row_headers(self, source: Message, *, offset: int | None = None, sequence: int = 0) -> Headers:
        """The headers of the only row that a first attempt makes of a source record."""
        at = source.offset() if offset is None else offset
        return [
            ("tailrace-source", f"{source.topic()}/{source.partition()}/{at}".encode()),
            ("tailrace-row", f"{self.query}/0/0/0/1/0/{sequence}".encode()),
        ]

    def write(self, value: bytes | None, headers: Headers, *, key: bytes | None = None) -> None:
        self._producer.produce(self.topic, value, key, headers=list(headers))
        assert self._producer.flush(20) == 0
