from __future__ import annotations

from base64 import b64encode

from pyflink.common import Types
from pyflink.datastream import DataStream


def answer(text: str) -> str:
    return b64encode(text.encode()).decode()


def build(records: DataStream) -> DataStream:
    return records.map(answer, output_type=Types.STRING())
