"""`tailrace-kafka` behind a join of two streams: whatever ends a run, each match is in the output once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import udf
from pyspark.sql.streaming.readwriter import DataStreamWriter

import tailrace
from tailrace import EmbeddedKafka, TailraceError
from tailrace._process.machine_load import stretched
from tailrace.contract.findings import Severity
from tests.helpers.topics import Collector, all_messages, headers_of, new_topic
from tests.helpers.two_streams import LIKE_REAL_TIME, Row, TwoStreams, has_read, running
from tests.helpers.waiting import comparing_times, until

SINK = "tailrace-kafka"
SOON_S = 300
KEYS = 10
ROWS = 60
RUNS = 2
MARK = "mark"


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[16]", LIKE_REAL_TIME)


@pytest.fixture
def streams(spark: SparkSession, kafka: EmbeddedKafka) -> TwoStreams:
    """Of two partitions each, so that rows come in another order each time."""
    return TwoStreams(spark, kafka, partitions=2)


def rows(numbers: range) -> list[Row]:
    return [row(number, f"k{number % KEYS}") for number in numbers]


def row(number: int, key: str) -> Row:
    # By the number: rows of one key are in both partitions.
    return {"id": number, "key": key, "at": 1_000_000, "value": "1", "partition": number % 2}


def writer(streams: TwoStreams, joined: DataFrame, output: str, checkpoint: Path, **options: str) -> DataStreamWriter:
    return streams.writer(joined, output, checkpoint, key="l_key").format(SINK).options(**options)


def has_written(out: Collector, number: int) -> None:
    until(lambda: len(out.rows()) >= number, f"{number} rows are out")


def settled(streams: TwoStreams, out: Collector) -> list[dict[str, Any]]:
    """What is out when a match has come that was made behind all the others, in both partitions."""
    marks = [row(-1, f"{MARK}{number}") for number in range(8)]
    streams.send(marks, marks)
    until(lambda: len([one for one in out.rows() if MARK in one["l_key"]]) >= len(marks), "the marks")
    return [one for one in out.rows() if MARK not in one["l_key"]]


def all_pairs(numbers: range) -> Counter[Any]:
    return Counter((left, right) for left in numbers for right in numbers if left % KEYS == right % KEYS)


def pairs(out: list[dict[str, Any]]) -> Counter[Any]:
    return Counter((one["l_id"], one["r_id"]) for one in out)


def each_pair(streams: TwoStreams) -> DataFrame:
    return streams.joined("inner")


def pairs_that_are_alike(streams: TwoStreams) -> DataFrame:
    return streams.joined("inner").select("l_key")


def each_twice(streams: TwoStreams) -> DataFrame:
    twice = streams.joined("inner").withColumn("part", F.explode(F.array(F.lit(1), F.lit(1))))
    return twice.withColumn("more", udf(lambda key: key + "!")("l_key"))


def each_that_matches(streams: TwoStreams) -> DataFrame:
    return streams.joined("left_semi")


PLAIN: dict[str, str] = {}
TRANSACTIONS = {"transactionInterval": "20 ms"}
QUERIES: list[Any] = [
    (each_pair, pairs, all_pairs, PLAIN),
    pytest.param(each_pair, pairs, all_pairs, TRANSACTIONS, marks=pytest.mark.chaos),
    (
        pairs_that_are_alike,
        lambda out: Counter(one["l_key"] for one in out),
        lambda numbers: Counter(f"k{left % KEYS}" for left, _ in all_pairs(numbers).elements()),
        PLAIN,
    ),
    (each_twice, pairs, lambda numbers: all_pairs(numbers) + all_pairs(numbers), PLAIN),
    (each_that_matches, lambda out: Counter(one["l_id"] for one in out), Counter, PLAIN),
]


@pytest.mark.parametrize(("query_of", "identify", "expected", "options"), QUERIES)
def test_each_match_once(
    streams: TwoStreams,
    checkpoint: Path,
    query_of: Callable[[TwoStreams], DataFrame],
    identify: Callable[[list[dict[str, Any]]], Counter[Any]],
    expected: Callable[[range], Counter[Any]],
    options: dict[str, str],
) -> None:
    output = streams.new_output()
    query = writer(streams, query_of(streams), output, checkpoint, **options)
    with Collector(streams.servers, output) as out:
        for run in range(RUNS):
            before = expected(range(run * ROWS)).total()
            with running(query):
                fresh = rows(range(run * ROWS, (run + 1) * ROWS))
                # One side after the other, so that in the next run another row is the second.
                first, second = ({"left": fresh}, {"right": fresh})[:: 1 if run % 2 else -1]
                streams.send(**first)
                streams.send(**second)
                # Ended as Spark ends: the open epoch is dropped, and computed again by the next run.
                has_written(out, before + ROWS // 2)
        wanted = expected(range(RUNS * ROWS))
        with running(query):
            has_written(out, wanted.total())
            assert identify(settled(streams, out)) == wanted


@contextmanager
def short_epochs(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.streaming.realTimeMode.minBatchDuration", "500")
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.streaming.realTimeMode.minBatchDuration")


def commits(checkpoint: Path) -> int:
    return len([entry for entry in (checkpoint / "commits").glob("*") if entry.name.isdigit()])


# Some milliseconds a row, in the thread that reads it.
SLOWLY = "length(sha2(repeat(l_value, 2000000), 512)) > 0"


def test_a_repetition_that_ends_before_the_other_row_is_read(streams: TwoStreams, checkpoint: Path) -> None:
    """The rows on the right completed all matches, and are read again long before those on the left. Epochs and runs
    end in between: what has not come again must not be forgotten, and what has must not hide others like it."""
    numbers, keys = range(2000), 200
    matches = len(numbers)
    output = streams.new_output()

    def query(*, slowly: bool) -> DataStreamWriter:
        left = streams.left().where(SLOWLY) if slowly else streams.left()
        joined = left.join(streams.right(), F.expr("l_key = r_key")).select("l_key")
        return writer(streams, joined, output, checkpoint)

    with Collector(streams.servers, output) as out, short_epochs(streams.spark):
        streams.send([row(number, f"k{number % keys}") for number in numbers])
        with running(query(slowly=False)) as first:
            has_read(first, len(numbers))
            streams.send((), [row(number, f"k{number}") for number in range(keys)])
            has_written(out, matches)
        for _ in range(2):
            so_far = commits(checkpoint)
            with running(query(slowly=True), epoch="500 milliseconds"):
                until(lambda: commits(checkpoint) >= so_far + 2, "epochs")  # noqa: B023
        with comparing_times():
            assert left_over(checkpoint), "all had come again by then"
        with running(query(slowly=False)):
            streams.send((), [row(number, f"k{number}") for number in range(keys)])
            has_written(out, 2 * matches)
            found = Counter(one["l_key"] for one in settled(streams, out))
            assert found == Counter({f"k{key}": 2 * matches // keys for key in range(keys)})


def left_over(checkpoint: Path) -> bool:
    logs = sorted((checkpoint / "tailrace-sink" / "epochs").glob("[0-9]*"), key=lambda entry: int(entry.name))
    return "matchesLeft" in logs[-1].read_text()


@pytest.mark.parametrize(
    "ends",
    [
        ("stop", "drain", "stop"),
        pytest.param(("stop", "drain", "stop", "stop", "drain", "drain"), marks=pytest.mark.chaos),
    ],
    ids=len,
)
def test_what_has_come_again_does_not_hide_another_like_it(
    streams: TwoStreams, checkpoint: Path, ends: tuple[str, ...]
) -> None:
    output = streams.new_output()
    query = writer(streams, pairs_that_are_alike(streams), output, checkpoint)
    with Collector(streams.servers, output) as out:
        streams.send([row(1, "a")])
        for number, end in enumerate(ends):
            with running(query) as started:
                # It matches the row on the left as those before it, and looks like them.
                streams.send((), [row(number, "a")])
                has_written(out, number + 1)
                if end == "drain":
                    tailrace.drain(started, timeout_s=stretched(SOON_S))
        with running(query):
            assert len(settled(streams, out)) == len(ends)


def test_what_was_dropped_is_in_the_progress(streams: TwoStreams, checkpoint: Path) -> None:
    output = streams.new_output()
    query = writer(streams, each_pair(streams), output, checkpoint)
    with Collector(streams.servers, output) as out:
        streams.send(rows(range(KEYS)), rows(range(KEYS)))
        with running(query):
            has_written(out, KEYS)
        with running(query) as again:
            settled(streams, out)
            tailrace.drain(again, timeout_s=stretched(SOON_S))
            counts = again.recentProgress[0].sink.metrics
            assert counts == {"deduplicated": str(KEYS), "corrected": "0", "madeByTime": "0"}


def test_a_function_that_fails_in_the_middle(streams: TwoStreams, checkpoint: Path, tmp_path: Path) -> None:
    failed = tmp_path / "failed"

    def fails_once(number: int) -> int:
        if number == 40 and not failed.exists():
            failed.touch()
            raise ValueError("once")
        return number

    output = streams.new_output()
    joined = each_pair(streams).withColumn("r_id", udf(fails_once, "long")("r_id"))
    query = writer(streams, joined, output, checkpoint)
    with Collector(streams.servers, output) as out:
        with pytest.raises(StreamingQueryException, match="once"), running(query) as started:  # noqa: PT012
            for first in range(0, ROWS, 10):
                streams.send(rows(range(first, first + 10)), rows(range(first, first + 10)))
                if first < 40:
                    has_written(out, all_pairs(range(first + 10)).total())
            until(started.exception, "the failure")
        with running(query):
            has_written(out, all_pairs(range(ROWS)).total())
            assert pairs(settled(streams, out)) == all_pairs(range(ROWS))


def test_all_that_a_record_says_is_its_content(streams: TwoStreams, checkpoint: Path) -> None:
    """Records that differ in their topic, partition or headers alone are not taken for each other."""
    output, other = streams.new_output(), new_topic(streams.servers, "other")
    of = F.expr("CAST(CAST(r_id div 2 AS STRING) AS BINARY)")
    joined = each_pair(streams).select(
        F.lit("same").alias("value"),
        F.when(F.col("r_id") % 2 == 0, output).otherwise(other).alias("topic"),
        F.expr("CAST(l_id % 2 AS INT)").alias("partition"),
        F.array(F.struct(F.lit("of").alias("key"), of.alias("value"))).alias("headers"),
    )
    query = (
        joined.writeStream.format(SINK)
        .option("kafka.bootstrap.servers", streams.servers)
        .option("checkpointLocation", str(checkpoint))
        .outputMode("update")
    )

    def found() -> list[tuple[Any, str]]:
        return [
            ((topic == output, message.partition(), headers_of(message)["of"]), headers_of(message)["tailrace-content"])
            for topic in (output, other)
            for message in all_messages(streams.servers, topic)
        ]

    def wanted(right: range) -> Counter[Any]:
        return Counter((r % 2 == 0, left % 2, str(r // 2)) for left in range(10) for r in right)

    streams.send([row(number, "a") for number in range(10)])
    for right in (range(10), range(11)):
        with running(query):
            # Those that are there already come again in the second run, and one more.
            streams.send((), [row(number, "a") for number in right if number == 10 or len(right) == 10])
            until(lambda: len(found()) >= wanted(right).total(), "rows")  # noqa: B023
        assert Counter(said for said, _ in found()) == wanted(right)
    contents = Counter(content for _, content in set(found()))
    assert len(contents) == len(wanted(range(11)))
    assert set(contents.values()) == {1}


def outer(streams: TwoStreams) -> DataFrame:
    return streams.joined("left_outer")


def deduplicated_before(streams: TwoStreams) -> DataFrame:
    return streams.left().dropDuplicates(["l_key"]).join(streams.right(), F.expr("l_key = r_key"))


def deduplicated_behind(streams: TwoStreams) -> DataFrame:
    return each_pair(streams).dropDuplicates(["l_key"])


def repartitioned(streams: TwoStreams) -> DataFrame:
    return each_pair(streams).repartition(2)


def beside_a_table_by_chance(streams: TwoStreams) -> DataFrame:
    table = streams.spark.createDataFrame([("a", 1)], "l_key STRING, n LONG").withColumn("n", F.rand())
    return each_pair(streams).join(F.broadcast(table), "l_key")


NO_IDENTITY, NOT_DETERMINISTIC = "TAILRACE_NO_ROW_IDENTITY", "TAILRACE_NOT_DETERMINISTIC"
REFUSED: list[tuple[str, str, Callable[[TwoStreams], DataFrame]]] = [
    (NO_IDENTITY, "left outer join", outer),
    (NO_IDENTITY, "dropDuplicates", deduplicated_before),
    (NO_IDENTITY, "dropDuplicates", deduplicated_behind),
    (NO_IDENTITY, "repartition", repartitioned),
    (NOT_DETERMINISTIC, "rand()", beside_a_table_by_chance),
    (NOT_DETERMINISTIC, "rand()", lambda streams: each_pair(streams).withColumn("more", F.rand())),
    (
        NOT_DETERMINISTIC,
        "rand()",
        lambda streams: streams.left().where(F.rand(1) < 0.5).join(streams.right(), F.expr("l_key = r_key")),
    ),
    (NOT_DETERMINISTIC, "uuid()", lambda streams: each_pair(streams).withColumn("more", F.expr("uuid()"))),
    (
        NOT_DETERMINISTIC,
        "current_timestamp()",
        lambda streams: each_pair(streams).withColumn("more", F.current_timestamp()),
    ),
    (
        NOT_DETERMINISTIC,
        "now()",
        lambda streams: each_pair(streams).withColumn("more", F.expr("now() - INTERVAL 1 DAY")),
    ),
    (NOT_DETERMINISTIC, "current_date()", lambda streams: each_pair(streams).where("current_date() > r_at")),
    (
        NOT_DETERMINISTIC,
        "monotonically_increasing_id()",
        lambda streams: each_pair(streams).withColumn("more", F.monotonically_increasing_id()),
    ),
    (
        NOT_DETERMINISTIC,
        "function by_chance",
        lambda streams: each_pair(streams).withColumn("more", udf(by_chance).asNondeterministic()("l_key")),
    ),
]


def by_chance(key: str) -> str:
    return key


@pytest.mark.parametrize(("code", "where", "query_of"), REFUSED)
def test_what_could_not_be_known_again_is_refused(
    streams: TwoStreams, checkpoint: Path, code: str, where: str, query_of: Callable[[TwoStreams], DataFrame]
) -> None:
    query = writer(streams, query_of(streams), streams.new_output(), checkpoint)
    in_real_time = query.trigger(realTime="5 minutes")  # type: ignore[call-overload]
    findings = [(one.code, one.title) for one in tailrace.check(in_real_time).of(Severity.BLOCKING)]
    assert (code, where) in findings
    with pytest.raises(TailraceError) as refused:
        in_real_time.start()
    assert code in str(refused.value)


@pytest.mark.parametrize("code", [NO_IDENTITY, NOT_DETERMINISTIC])
def test_the_plugin_refuses_it_too(streams: TwoStreams, checkpoint: Path, code: str) -> None:
    query_of = outer if code == NO_IDENTITY else beside_a_table_by_chance
    query = writer(streams, query_of(streams), streams.new_output(), checkpoint)
    streams.spark.conf.set("spark.tailrace.check.warnOnly", code)
    try:
        with pytest.raises(IllegalArgumentException, match=code) as refused:
            query.trigger(realTime="5 minutes").start()  # type: ignore[call-overload]
        assert "Fix:" in str(refused.value)
    finally:
        streams.spark.conf.unset("spark.tailrace.check.warnOnly")


def test_what_stays_the_same_is_not_refused(streams: TwoStreams, checkpoint: Path) -> None:
    same = each_pair(streams).withColumn("more", udf(str.upper)("l_key")).withColumn("who", F.expr("current_user()"))
    query = writer(streams, same, streams.new_output(), checkpoint).trigger(realTime="5 minutes")  # type: ignore[call-overload]
    assert not tailrace.check(query).blocked
