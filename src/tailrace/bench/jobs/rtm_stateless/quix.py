from __future__ import annotations

from base64 import b64encode

from quixstreams.dataframe import StreamingDataFrame

VALUE = "bytes"


def build(records: StreamingDataFrame) -> StreamingDataFrame:
    return records.apply(b64encode)
