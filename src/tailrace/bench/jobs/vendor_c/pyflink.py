from __future__ import annotations

from pyflink.common import Types
from pyflink.datastream import DataStream

from . import loop


def answer(text: str) -> str:
    """A table of that size is a dictionary in every task."""
    return (loop.answer(text.encode()) or b"").decode()


def build(records: DataStream) -> DataStream:
    return records.map(answer, output_type=Types.STRING())
