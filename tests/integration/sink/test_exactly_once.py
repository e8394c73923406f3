"""`tailrace-kafka`: whatever ends a run, each row is in the output once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import udf

from tests.helpers.pipeline import Pipeline
from tests.helpers.topics import Collector, ContinuousLoad, produce
from tests.helpers.waiting import until

SINK = "tailrace-kafka"
# No test waits for its end.
EPOCH = "10 minutes"
RUNS = 2


def passed_on(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows()


def filtered(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().where("id % 3 != 0")


def through_python(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().withColumn("more", udf(lambda key: key + "!")("key"))


def exploded(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().withColumn("part", F.explode(F.array(F.lit(1), F.lit(2), F.lit(2))))


def exploded_and_shuffled(pipeline: Pipeline) -> DataFrame:
    """Rows of one record come to different tasks, among others, and two of them are alike."""
    return exploded(pipeline).repartition(2, "part")


def exploded_and_shuffled_twice(pipeline: Pipeline) -> DataFrame:
    again = exploded_and_shuffled(pipeline).withColumn("half", F.explode(F.array(F.lit(1), F.lit(2))))
    return again.repartition(2, "half")


def exploded_in_random_order(pipeline: Pipeline) -> DataFrame:
    """As the matches of a join may come; which of the rows is which, only their content says."""
    return pipeline.rows().withColumn("part", F.explode(F.shuffle(F.array(F.lit(1), F.lit(2), F.lit(2)))))


def read_twice(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().union(pipeline.rows())


def not_deterministic(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().withColumn("random", F.rand()).withColumn("now", F.current_timestamp())


def counted(pipeline: Pipeline) -> DataFrame:
    """Rows of one key come from both partitions, so that their order is another one in each run."""
    return pipeline.rows().groupBy("key").agg(F.count("*").alias("n"), F.sum("id").alias("total"))


def counted_behind_two_shuffles(pipeline: Pipeline) -> DataFrame:
    """Rows of one partition overtake each other on their way."""
    rows = pipeline.rows().repartition(2, "id")
    return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("id").alias("total"))


def first_of_each(pipeline: Pipeline) -> DataFrame:
    """Which of the rows with a number is the first is decided by chance, once."""
    return pipeline.rows().withColumn("number", F.expr("id div 3")).dropDuplicates(["number"])


def first_of_each_for_an_hour(pipeline: Pipeline) -> DataFrame:
    rows = pipeline.rows().withColumn("number", F.expr("id div 3"))
    sent = rows.withColumn("sent_at", F.expr("timestamp_micros(sent_ns div 1000)")).withWatermark("sent_at", "1 hour")
    return sent.dropDuplicatesWithinWatermark(["number"])


def by_id(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(row["id"] for row in rows)


def by_part(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter((row["id"], row["part"]) for row in rows)


def by_half(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter((row["id"], row["part"], row["half"]) for row in rows)


def in_parts(sent: int) -> Counter[Any]:
    return Counter((i, part) for i in range(sent) for part in (1, 2, 2))


STATELESS: list[Any] = [
    (passed_on, by_id, lambda sent: Counter(range(sent))),
    pytest.param(filtered, by_id, lambda sent: Counter(i for i in range(sent) if i % 3), marks=pytest.mark.chaos),
    (through_python, by_id, lambda sent: Counter(range(sent))),
    pytest.param(exploded, by_part, in_parts, marks=pytest.mark.chaos),
    (exploded_in_random_order, by_part, in_parts),
    pytest.param(exploded_and_shuffled, by_part, in_parts, marks=pytest.mark.chaos),
    (
        exploded_and_shuffled_twice,
        by_half,
        lambda sent: Counter((i, part, half) for i in range(sent) for part in (1, 2, 2) for half in (1, 2)),
    ),
    (read_twice, by_id, lambda sent: Counter(dict.fromkeys(range(sent), 2))),
    (not_deterministic, by_id, lambda sent: Counter(range(sent))),
]


@pytest.mark.parametrize(("query_of", "identify", "expected"), STATELESS, ids=lambda it: getattr(it, "__name__", ""))
def test_each_row_once(
    pipeline: Pipeline, query_of: Callable[[Pipeline], DataFrame], identify: Callable[..., Any], expected: Any
) -> None:
    with pipeline.collect() as out, ContinuousLoad(pipeline.servers, pipeline.input, per_second=200) as load:
        for _ in range(RUNS):
            with pipeline.running(query_of(pipeline), epoch=EPOCH, sink=SINK):
                so_far = len(out.rows())
                until(lambda: len(out.rows()) > so_far + 100, "rows flow")  # noqa: B023
                # Stopped as Spark stops: the open epoch is dropped, and read again by the next run.
        load.stop()
        wanted = expected(load.sent)
        with pipeline.running(query_of(pipeline), epoch=EPOCH, sink=SINK):
            until(lambda: len(out.rows()) >= wanted.total(), "all rows are out")
            # A mark behind them all: what would come twice has come by then.
            pipeline.send(range(-5, 0))
            until(lambda: min(row["id"] for row in out.rows()) == -5, "the mark")
        found = Counter(
            {one: n for one, n in identify(out.rows()).items() if (one if isinstance(one, int) else one[0]) >= 0}
        )
        assert found == wanted


@pytest.mark.parametrize("options", [{}, {"transactionInterval": "20 ms"}], ids=["plain", "transactions"])
def test_each_count_once(pipeline: Pipeline, options: dict[str, str]) -> None:
    with pipeline.collect() as out, ContinuousLoad(pipeline.servers, pipeline.input, per_second=300, keys=3) as load:
        for _ in range(RUNS):
            with pipeline.running(counted(pipeline), epoch=EPOCH, sink=SINK, options=options):
                so_far = len(out.rows())
                until(lambda: len(out.rows()) > so_far + 200, "rows flow")  # noqa: B023
        load.stop()
        with pipeline.running(counted(pipeline), epoch=EPOCH, sink=SINK, options=options):
            until(lambda: len(out.rows()) >= load.sent, "all counts are out")
        rows = out.rows()
        counts = Counter((row["key"], row["n"]) for row in rows)
        assert counts == Counter((f"k{i % 3}", i // 3 + 1) for i in range(load.sent))
        ids = {f"k{k}": [i for i in range(load.sent) if i % 3 == k] for k in range(3)}
        assert last_counts(out) == {key: (len(of), sum(of)) for key, of in ids.items()}


def test_no_count_is_lost_behind_two_shuffles(pipeline: Pipeline) -> None:
    """What the order was cannot be known for sure there: updates may come again, and the last ones are right."""
    with pipeline.collect() as out, ContinuousLoad(pipeline.servers, pipeline.input, per_second=300, keys=3) as load:
        for _ in range(RUNS):
            with pipeline.running(counted_behind_two_shuffles(pipeline), epoch=EPOCH, sink=SINK):
                so_far = len(out.rows())
                until(lambda: len(out.rows()) > so_far + 200, "rows flow")  # noqa: B023
        load.stop()
        ids = {f"k{k}": [i for i in range(load.sent) if i % 3 == k] for k in range(3)}
        wanted = {key: (len(of), sum(of)) for key, of in ids.items()}
        with pipeline.running(counted_behind_two_shuffles(pipeline), epoch=EPOCH, sink=SINK):
            until(lambda: last_counts(out) == wanted, "the last counts")
            pipeline.send(range(1), keys=1)
            until(lambda: last_counts(out)["k0"][0] == wanted["k0"][0] + 1, "one more")
        assert {key: count for key, count in last_counts(out).items() if key != "k0"} == {
            key: count for key, count in wanted.items() if key != "k0"
        }


def last_counts(out: Collector) -> dict[str, tuple[int, int]]:
    return {row["key"]: (row["n"], row["total"]) for row in out.rows()}


@pytest.mark.parametrize("query_of", [pytest.param(passed_on, marks=pytest.mark.chaos), counted])
def test_a_replay_that_takes_longer_than_an_epoch(
    pipeline: Pipeline, query_of: Callable[[Pipeline], DataFrame]
) -> None:
    """The second run ends its epochs before it has come to what the first has written; the third must know of both."""

    def slowly(key: str) -> str:
        import time

        time.sleep(0.002)  # noqa: TID251 (a user's slow function)
        return key

    rows = pipeline.rows
    pipeline.rows = lambda: rows().withColumn("key", udf(slowly)("key"))  # type: ignore[method-assign]
    sent = 3000
    produce(pipeline.servers, pipeline.input, ({"id": i, "key": f"k{i % 3}"} for i in range(sent)), key="id")
    pipeline.spark.conf.set("spark.sql.streaming.realTimeMode.minBatchDuration", "500")
    try:
        with pipeline.collect() as out:
            with pipeline.running(query_of(pipeline), epoch=EPOCH, sink=SINK):
                until(lambda: len(out.rows()) >= sent * 0.9, "most rows are out")
            with pipeline.running(query_of(pipeline), epoch="500 milliseconds", sink=SINK):
                until(lambda: len(pipeline.log("commits")) >= 1, "an epoch")
            with pipeline.running(query_of(pipeline), epoch=EPOCH, sink=SINK):
                until(lambda: len(out.rows()) >= sent, "all rows are out")
                produce(pipeline.servers, pipeline.input, [{"id": -1, "key": "mark"}])
                until(lambda: any(row["key"] == "mark" for row in out.rows()), "the mark")
            assert len(out.rows()) == sent + 1
    finally:
        pipeline.spark.conf.unset("spark.sql.streaming.realTimeMode.minBatchDuration")


@pytest.mark.parametrize("query_of", [first_of_each, first_of_each_for_an_hour])
def test_the_first_of_each_once(pipeline: Pipeline, query_of: Callable[[Pipeline], DataFrame]) -> None:
    with pipeline.collect() as out, ContinuousLoad(pipeline.servers, pipeline.input, per_second=300) as load:
        for _ in range(RUNS):
            with pipeline.running(query_of(pipeline), epoch=EPOCH, sink=SINK):
                so_far = len(out.rows())
                until(lambda: len(out.rows()) > so_far + 100, "rows flow")  # noqa: B023
        load.stop()
        numbers = -(-load.sent // 3)
        with pipeline.running(query_of(pipeline), epoch=EPOCH, sink=SINK):
            until(lambda: len(out.rows()) >= numbers, "all are out")
        assert Counter(row["number"] for row in out.rows()) == Counter(range(numbers))
