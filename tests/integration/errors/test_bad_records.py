"""Bad records: the error names them, and the query skips them if `onError` says so."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import udf
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.streaming.query import StreamingQuery

import tailrace
from tailrace import TailraceError
from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import all_messages, headers_of, new_topic, produce
from tests.helpers.waiting import until

EPOCH = "10 minutes"
SOON_S = 300
BAD = {7, 8, 23, 31}
BAD_RECORD = b'{"id": 7, "key": "k1", "text": "seven"}'
# The headers of a dead letter, without their prefix.
ADDED = ("source", "query", "error", "error-class", "failed-at")


def start(pipeline: Pipeline, rows: DataFrame, *, sink: str = "kafka", **options: str) -> StreamingQuery:
    out = rows.select(F.to_json(F.struct("*")).alias("value"))
    writer = pipeline.writer(out, sink).option("topic", pipeline.output).options(**options)
    return writer.trigger(realTime=EPOCH).start()  # type: ignore[call-overload,no-any-return]


def send(pipeline: Pipeline, ids: range) -> None:
    """Some of the texts are no numbers."""
    rows = ({"id": i, "key": f"k{i % 3}", "text": "seven" if i in BAD else str(i)} for i in ids)
    produce(pipeline.servers, pipeline.input, rows)


def parsed(pipeline: Pipeline) -> DataFrame:
    row = F.from_json("value", "id LONG, key STRING, text STRING")
    return pipeline.raw().select(row.alias("row")).select("row.*")


def bad_cast(pipeline: Pipeline) -> DataFrame:
    return parsed(pipeline).withColumn("number", F.col("text").cast("int"))


def bad_cast_behind_a_shuffle(pipeline: Pipeline) -> DataFrame:
    return parsed(pipeline).repartition(2, "key").withColumn("number", F.col("text").cast("int"))


def bad_cast_before_an_aggregation(pipeline: Pipeline) -> DataFrame:
    return bad_cast(pipeline).groupBy("key").agg(F.max("id").alias("id"), F.sum("number").alias("total"))


def python_udf(pipeline: Pipeline) -> DataFrame:
    return parsed(pipeline).withColumn("number", udf(lambda text: int(text), "int")("text"))


def pickled_udf(pipeline: Pipeline) -> DataFrame:
    number = udf(lambda text: int(text), "int", useArrow=False)
    return parsed(pipeline).withColumn("number", number("text"))


def pandas_function(pipeline: Pipeline) -> DataFrame:
    @pandas_udf("int")  # type: ignore[call-overload,untyped-decorator]
    def number(text: pd.Series) -> pd.Series:
        return text.map(int)

    return parsed(pipeline).withColumn("number", number("text"))


def pandas_function_over_batches(pipeline: Pipeline) -> DataFrame:
    @pandas_udf("int")  # type: ignore[call-overload,untyped-decorator]
    def number(texts: Iterator[pd.Series]) -> Iterator[pd.Series]:
        for text in texts:
            yield text.map(int)

    return parsed(pipeline).withColumn("number", number("text"))


def arrow_function(pipeline: Pipeline) -> DataFrame:
    @F.arrow_udf("int")  # type: ignore[attr-defined,untyped-decorator]
    def number(text: pa.Array) -> pa.Array:
        return pa.array([int(one.as_py()) for one in text], pa.int32())

    return parsed(pipeline).withColumn("number", number("text"))


def result_that_cannot_be_converted(pipeline: Pipeline) -> DataFrame:
    number = udf(lambda text: int(text) if text.isdigit() else [text], "int")
    return parsed(pipeline).withColumn("number", number("text"))


def two_functions(pipeline: Pipeline) -> DataFrame:
    first, second = udf(lambda text: int(text), "int"), udf(lambda text: len(text), "int")
    return parsed(pipeline).select("*", first("text").alias("number"), second("text").alias("length"))


def python_and_then_sql(pipeline: Pipeline) -> DataFrame:
    """The cast is made where the second function's arguments are."""
    once = udf(lambda text: text if text != "seven" else "eight", "string")
    again = udf(lambda number: number + 0, "int")
    return parsed(pipeline).withColumn("number", again(once("text").cast("int")))


def python_worker_crashes(pipeline: Pipeline) -> DataFrame:
    def number(text: str) -> int:
        import os

        return int(text) if text != "seven" else os._exit(1)

    return parsed(pipeline).withColumn("number", udf(number, "int")("text"))


def parse_error(pipeline: Pipeline) -> DataFrame:
    number = F.from_json(F.concat(F.lit('{"n": '), "text", F.lit("}")), "n INT", {"mode": "FAILFAST"})
    return parsed(pipeline).withColumn("number", number.n)


def bad_cast_before_python(pipeline: Pipeline) -> DataFrame:
    return bad_cast(pipeline).withColumn("more", udf(lambda number: number + 1, "int")("number"))


QUERIES = [
    bad_cast,
    bad_cast_behind_a_shuffle,
    python_udf,
    pickled_udf,
    pandas_function,
    pandas_function_over_batches,
    arrow_function,
    result_that_cannot_be_converted,
    two_functions,
    python_and_then_sql,
    python_worker_crashes,
    parse_error,
    bad_cast_before_python,
]


def is_alive(query: StreamingQuery) -> bool:
    """Raises what it died of."""
    if (failure := query.exception()) is not None:
        raise failure
    return True


@pytest.mark.parametrize("query_of", QUERIES)
def test_dead_letters(pipeline: Pipeline, query_of: Callable[[Pipeline], DataFrame]) -> None:
    letters = new_topic(pipeline.servers, "dead")
    with pipeline.collect() as out:
        query = start(pipeline, query_of(pipeline), onError="dead-letter", deadLetterTopic=letters)
        send(pipeline, range(40))
        until(lambda: is_alive(query) and len(out.rows()) >= 40 - len(BAD), "the good rows")
        # The last of them, too, is followed by a good one that has come.
        assert Counter(row["id"] for row in out.rows()) == Counter(set(range(40)) - BAD)
        send(pipeline, range(50, 60))
        until(lambda: len(out.rows()) >= 50 - len(BAD), "and it goes on")
        assert query.isActive
    sources = {message.value(): message for message in all_messages(pipeline.servers, pipeline.input)}
    until(lambda: len(all_messages(pipeline.servers, letters)) >= len(BAD), "the letters")
    found = all_messages(pipeline.servers, letters)
    assert sorted(json.loads(message.value() or b"")["id"] for message in found) == sorted(BAD)
    for message in found:
        original = sources[message.value()]
        headers = headers_of(message)
        assert message.key() == original.key()
        assert headers["tailrace-source"] == f"{original.topic()}/{original.partition()}/{original.offset()}"
        assert headers["tailrace-query"] == str(query.id)
        assert headers["tailrace-error"]
        assert headers["tailrace-error-class"]


@pytest.mark.parametrize(
    "query_of", [python_udf, pickled_udf, pandas_function, pandas_function_over_batches, python_and_then_sql]
)
def test_a_bad_record_costs_little(pipeline: Pipeline, query_of: Callable[[Pipeline], DataFrame]) -> None:
    """Each of them once cost a new worker, which takes a second to start."""
    with pipeline.collect() as out:
        query = start(pipeline, query_of(pipeline), onError="drop", errorsPerMinute="100000")
        send(pipeline, range(10))
        until(lambda: is_alive(query) and len(out.rows()) >= 10 - len(BAD & set(range(10))), "a warm worker")
        bad_ones = range(101, 500, 2)
        rows = ({"id": i, "key": f"k{i % 3}", "text": "x" if i in bad_ones else "1"} for i in range(100, 500))
        produce(pipeline.servers, pipeline.input, rows)
        until(lambda: is_alive(query) and any(row["id"] == 498 for row in out.rows()), "the rest")
        until(lambda: len(out.rows()) >= 200 + 10 - len(BAD & set(range(10))), "all good ones")
        assert Counter(row["id"] for row in out.rows() if row["id"] >= 100) == Counter(range(100, 500, 2))


def test_a_letter_does_not_carry_on_what_another_query_said_of_its_rows(pipeline: Pipeline) -> None:
    """The source may be the output of `tailrace-kafka`."""
    letters = new_topic(pipeline.servers, "dead")
    producer = Producer({"bootstrap.servers": pipeline.servers})
    of_others = [
        ("tailrace-source", b"before/0/1"),
        ("tailrace-row", b"other/0/0/0/1/0/0"),
        ("tailrace-mac", b"0" * 32),
    ]
    producer.produce(pipeline.input, BAD_RECORD, b"k1", headers=[("mine", b"here"), *of_others])
    assert producer.flush(20) == 0
    start(pipeline, bad_cast(pipeline), onError="dead-letter", deadLetterTopic=letters)
    (letter,) = until(lambda: all_messages(pipeline.servers, letters), "the letter")
    names = Counter(header[0] for header in letter.headers() or ())
    assert set(names) == {"mine", *(f"tailrace-{name}" for name in ADDED)}
    assert set(names.values()) == {1}
    assert headers_of(letter)["tailrace-source"].startswith(f"{pipeline.input}/")


def near_the_limit(beside: bytes = b"") -> bytes:
    """So large that the topic takes it, and not one more header."""
    return BAD_RECORD.replace(b"}", b', "more": "' + b"x" * (1_048_350 - len(BAD_RECORD) - len(beside)) + b'"}')


@pytest.mark.parametrize("large", ["value", "key", "value, and the letters may be larger"])
def test_a_letter_that_is_too_large_is_sent_without_what_does_not_fit(pipeline: Pipeline, large: str) -> None:
    letters = new_topic(pipeline.servers, "dead")
    if "larger" in large:
        allow_larger_records(pipeline.servers, letters)
    key, value = (near_the_limit(BAD_RECORD), BAD_RECORD) if large == "key" else (b"k1", near_the_limit(b"k1"))
    producer = Producer({"bootstrap.servers": pipeline.servers, "message.max.bytes": 2_000_000})
    with pipeline.collect() as out:
        query = start(pipeline, bad_cast(pipeline), onError="dead-letter", deadLetterTopic=letters)
        producer.produce(pipeline.input, value, key)
        assert producer.flush(20) == 0
        send(pipeline, range(3))
        until(lambda: is_alive(query) and len(out.rows()) >= 3, "the query continues")
        (letter,) = until(lambda: all_messages(pipeline.servers, letters), "the letter")
    original = next(one for one in all_messages(pipeline.servers, pipeline.input) if one.value() == value)
    headers = headers_of(letter)
    assert headers["tailrace-source"] == f"{original.topic()}/{original.partition()}/{original.offset()}"
    assert "CAST_INVALID_INPUT" in headers["tailrace-error"]
    if "larger" in large:
        assert (letter.key(), letter.value()) == (key, value)
        assert "tailrace-record" not in headers
    else:
        assert (letter.key(), letter.value()) == (None if large == "key" else key, b"")
        assert headers["tailrace-record"] == "too-large"


def allow_larger_records(servers: str, topic: str) -> None:
    limit = ConfigEntry("max.message.bytes", "5000000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[limit])
    admin = AdminClient({"bootstrap.servers": servers})
    for changed in admin.incremental_alter_configs([resource]).values():
        changed.result(30)


@pytest.mark.parametrize(
    "to_number",
    [lambda text: text.cast("int"), lambda text: udf(lambda one: int(one), "int")(text)],
    ids=["sql", "python"],
)
def test_several_bad_rows_of_one_record_are_one_letter(
    pipeline: Pipeline, to_number: Callable[[Column], Column]
) -> None:
    letters = new_topic(pipeline.servers, "dead")

    def lettered() -> Counter[int]:
        return Counter(json.loads(message.value() or b"")["id"] for message in all_messages(pipeline.servers, letters))

    twice = parsed(pipeline).withColumn("text", F.explode(F.array("text", "text", F.lit("1"))))
    with pipeline.collect() as out:
        query = start(
            pipeline,
            twice.withColumn("number", to_number(F.col("text"))),
            onError="dead-letter",
            deadLetterTopic=letters,
        )
        send(pipeline, range(7, 10))
        until(lambda: sum(row["id"] == 9 for row in out.rows()) == 3, "the good record")
        # Letters are sent in the background.
        until(lambda: set(lettered()) == {7, 8}, "the letters")
        query.stop()
    assert lettered() == {7: 1, 8: 1}


def test_the_rest_is_counted(pipeline: Pipeline) -> None:
    with pipeline.collect() as out:
        query = start(pipeline, bad_cast_before_an_aggregation(pipeline), onError="drop")
        send(pipeline, range(40))
        wanted = {f"k{key}": sum(i for i in range(key, 40, 3) if i not in BAD) for key in range(3)}
        until(lambda: {row["key"]: row["total"] for row in out.rows()} == wanted, "the sums")
        # And so are the bad records.
        bad: Any = until(
            lambda: (told := tailrace.latency(query).figures.bad_records).records == len(BAD) and told,
            "all of them are told",
            within_s=SOON_S,
        )
        assert "CAST_INVALID_INPUT" in bad.last_error
        assert "TAILRACE_BAD_RECORDS" in {finding.code for finding in tailrace.latency(query).findings}


@pytest.mark.parametrize(
    "query_of", [bad_cast, bad_cast_behind_a_shuffle, python_udf, python_and_then_sql, bad_cast_before_python]
)
def test_by_default_the_query_fails_and_names_the_record(
    pipeline: Pipeline, query_of: Callable[[Pipeline], DataFrame]
) -> None:
    query = start(pipeline, query_of(pipeline))
    send(pipeline, range(8))
    with pytest.raises(StreamingQueryException) as failed:
        query.awaitTermination(SOON_S)
    bad = next(one for one in all_messages(pipeline.servers, pipeline.input) if b"seven" in (one.value() or b""))
    assert f"topic '{bad.topic()}', partition {bad.partition()}, offset {bad.offset()}" in str(failed.value)


def test_too_many_are_too_many(pipeline: Pipeline) -> None:
    query = start(pipeline, bad_cast(pipeline), onError="drop", errorsPerMinute="3")
    produce(pipeline.servers, pipeline.input, ({"id": i, "key": "k", "text": "seven"} for i in range(10)))
    with pytest.raises(StreamingQueryException, match="TAILRACE_TOO_MANY_ERRORS"):
        query.awaitTermination(SOON_S)


def test_a_row_that_is_too_large_for_the_exactly_once_sink(pipeline: Pipeline) -> None:
    letters = new_topic(pipeline.servers, "dead")
    blown_up = parsed(pipeline).withColumn("text", F.when(F.col("id") == 3, F.repeat("text", 3_000_000)).otherwise("x"))
    options = {"onError": "dead-letter", "deadLetterTopic": letters}
    with pipeline.collect() as out:
        start(pipeline, blown_up, sink="tailrace-kafka", **options)
        send(pipeline, range(6))
        until(lambda: len(out.rows()) == 5, "the others")
        # What was not taken is noticed at the next row.
        send(pipeline, range(50, 60))
        until(lambda: len(all_messages(pipeline.servers, letters)) == 1, "the letter")


POLICIES: list[tuple[dict[str, str], str]] = [
    ({"onError": "ignore"}, "choose fail, dead-letter or drop"),
    ({"onError": "dead-letter"}, "deadLetterTopic"),
    ({"onError": "drop", "errorsPerMinute": "many"}, "errorsPerMinute"),
]


@pytest.mark.parametrize(("options", "said"), POLICIES)
def test_a_policy_that_makes_no_sense(pipeline: Pipeline, options: dict[str, str], said: str) -> None:
    with pytest.raises(TailraceError, match="TAILRACE_BAD_ERROR_POLICY") as refused:
        start(pipeline, parsed(pipeline), **options)
    assert said in str(refused.value)
