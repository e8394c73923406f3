"""A user's script as its own reference: the query that writes the output runs in micro-batch, once, without a fault.

Runs as a process of its own. The script is unchanged; its readers and writers are: the query has a checkpoint and a
topic of its own, and may read a copy of the input. Queries that write elsewhere are not started.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from tailrace.chaos import _script
from tailrace.chaos._events import tell
from tailrace.check.facts import option, writer_options
from tailrace.check.start_hook import intercept
from tailrace.check.stub_query import StubQuery

# Before anything replaces it.
_sparks_start = DataStreamWriter.start


@dataclass(frozen=True)
class Reference:
    """Given as JSON on the command line, before the script and its arguments."""

    output_topic: str
    input_topic: str
    reference_topic: str
    read_from: str
    """The input topic, or a copy of it."""
    checkpoint: str
    batch_size: int
    """The most records of a batch."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def main() -> None:
    reference = Reference(**json.loads(sys.argv[1]))
    del sys.argv[1]
    _redirect_readers(reference)
    intercept(lambda writer: _run(writer, reference))
    _script.main()


def _redirect_readers(reference: Reference) -> None:
    """Only those of the input: a query may read other topics, and other sources, too."""
    set_option: Callable[..., DataStreamReader] = DataStreamReader.option

    def redirected(reader: DataStreamReader, key: str, value: Any) -> DataStreamReader:
        if key.lower() == "subscribe" and value == reference.input_topic:
            set_option(reader, "maxOffsetsPerTrigger", reference.batch_size)
            value = reference.read_from
        return set_option(reader, key, value)

    def options(reader: DataStreamReader, **named: Any) -> DataStreamReader:
        for key, value in named.items():
            redirected(reader, key, value)
        return reader

    DataStreamReader.option = redirected  # type: ignore[method-assign, assignment]
    DataStreamReader.options = options  # type: ignore[method-assign, assignment]


def _run(writer: DataStreamWriter, reference: Reference) -> Any:
    set_before = writer_options(writer)
    if option(set_before, "topic") != reference.output_topic:
        return StubQuery(option(set_before, "queryName"), lambda: None)
    writer.format("kafka").option("topic", reference.reference_topic)
    writer.option("checkpointLocation", reference.checkpoint).trigger(availableNow=True)
    query = _sparks_start(writer)
    query.awaitTermination()
    tell("reference")
    return query


if __name__ == "__main__":
    main()
