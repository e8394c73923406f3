from __future__ import annotations

from base64 import b64encode

from quixstreams.dataframe import StreamingDataFrame

from . import LONGEST

VALUE = "bytes"


def build(records: StreamingDataFrame) -> StreamingDataFrame:
    return records.apply(lambda value: b64encode(value[:LONGEST]))
