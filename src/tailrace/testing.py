"""Test streaming queries: add rows, move the clock, look at the results, in Real-Time Mode and in micro-batch.

    @pytest.mark.parametrize("mode", tailrace.testing.MODES)
    def test_the_sum_is_kept(spark, mode):
        with tailrace.testing.StreamTest(spark, mode) as test:
            payments = test.source("card string, amount double")
            sums = test.start(payments.rows.groupBy("card").agg(F.sum("amount").alias("total")))
            payments.add(("a", 1.0), ("b", 5.0), ("a", 2.0))
            test.process()
            assert sums.latest("card") == {"a": 3.0, "b": 5.0}

No broker is needed: the rows come from Spark's memory source for Real-Time Mode. To test a `transformWithState`
processor without a query, use Spark's own `pyspark.sql.streaming.tws_tester.TwsTester`.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from tailrace._testing.results import Results
from tailrace._testing.source import Source
from tailrace._testing.stream_test import MODES, Mode, StreamTest
from tailrace.session import configure

__all__ = ["MODES", "Mode", "Results", "Source", "StreamTest", "session"]


def session(settings: dict[str, str] | None = None) -> SparkSession:
    """Create a local session for tests, with eight task slots, two shuffle partitions and no web interface.

    :param settings: further settings, which win over these.
    """
    builder = SparkSession.builder.master("local[8]").appName("tailrace-testing")
    for key, value in {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false", **(settings or {})}.items():
        builder = builder.config(key, value)
    return configure(builder).getOrCreate()
