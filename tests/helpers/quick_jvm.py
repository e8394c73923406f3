"""JVMs that start faster: a test's JVM lives for seconds, and would spend most of them loading and compiling Spark.

`python -m tests.helpers.quick_jvm` writes an archive of Spark's loaded and verified classes. It is kept in the virtual
environment, because it fits only the PySpark there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import Row
from pyspark.sql import functions as F

from tailrace import testing

VARIABLE = "SPARK_SUBMIT_OPTS"
ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
# Half the work of the compiler that optimizes would be for code that a test runs once. An archive that does not fit,
# such as one of another Java, is passed over; that the JVM would say so is why it says nothing.
OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:SharedArchiveFile={ARCHIVE} -Xlog:disable"


def write_archive() -> None:
    os.environ[VARIABLE] = f"-XX:ArchiveClassesAtExit={ARCHIVE} -Xlog:disable"
    spark = testing.session()
    spark.sparkContext.setLogLevel("OFF")
    with testing.StreamTest(spark) as test:
        numbers = test.source("n LONG")
        doubled = numbers.rows.select(F.udf(lambda n: 2 * n, "long")("n").alias("n"))
        counts = test.start(doubled.groupBy("n").count())
        numbers.add((1,))
        test.process()
        assert counts.rows() == [Row(n=2, count=1)]
    spark.range(10).groupBy("id").count().collect()
    spark.stop()
    # The JVM writes the archive when it ends, which it does when its input is closed.
    jvm = SparkContext._gateway.proc  # type: ignore[union-attr]
    jvm.stdin.close()
    jvm.wait()


if __name__ == "__main__":
    write_archive()
