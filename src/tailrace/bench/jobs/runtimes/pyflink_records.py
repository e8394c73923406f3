"""Records as tuples of PyFlink, for the workloads that need them by key."""

from __future__ import annotations

import json

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedStream

RECORD = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])


def parse(text: str) -> tuple[str, int, int, int]:
    record = json.loads(text)
    return record["key"], record["number"], record["intended_ns"], record["amount"]


def by_key(records: DataStream) -> KeyedStream:
    """(key, number, intended_ns, amount), by key."""
    return records.map(parse, output_type=RECORD).key_by(lambda record: record[0], key_type=Types.STRING())
