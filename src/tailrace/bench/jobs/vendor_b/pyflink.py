from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from pyflink.common import Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from . import LONGEST

MINUTE_NS = 60 * 10**9
RECORD = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING()])


def encode(text: str) -> tuple[str, int, int, str]:
    record = json.loads(text)
    body = b64encode(record["text"].encode()[:LONGEST]).decode()
    return record["key"], record["number"], record["intended_ns"], body


class Count(KeyedProcessFunction):
    """The count of the current minute: a key's records come in order."""

    def open(self, runtime_context: RuntimeContext) -> None:
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        self.counted = runtime_context.get_state(ValueStateDescriptor("counted", pair))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        key, number, intended_ns, body = value
        minute, count = self.counted.value() or (0, 0)
        count = count + 1 if minute == intended_ns // MINUTE_NS else 1
        self.counted.update((intended_ns // MINUTE_NS, count))
        yield json.dumps({"key": key, "number": number, "intended_ns": intended_ns, "count": count, "body": body})


def build(records: DataStream) -> DataStream:
    keyed = records.map(encode, output_type=RECORD).key_by(lambda record: record[0], key_type=Types.STRING())
    return keyed.process(Count(), output_type=Types.STRING())
