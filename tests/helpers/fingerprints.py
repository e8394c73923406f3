"""The fingerprints of some queries, as the sink would store them; as a program it prints them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import udf
from pyspark.sql.pandas.functions import pandas_udf

import tailrace

SINK_PACKAGE = "org.apache.spark.sql.tailrace.sink"


def queries(spark: SparkSession) -> dict[str, Callable[[], DataFrame]]:
    def rows() -> DataFrame:
        return spark.readStream.format("rate").load().withWatermark("timestamp", "1 minute")

    @pandas_udf("long")  # type: ignore[call-overload,untyped-decorator]
    def halved(values: pd.Series) -> pd.Series:
        return values // 2

    def table() -> DataFrame:
        return spark.createDataFrame([(1, "one"), (2, "two")], "value LONG, name STRING")

    def windows() -> DataFrame:
        return rows().groupBy(F.window("timestamp", "1 minute"), "value").agg(F.count("*"), F.max("value"))

    window_of_sessions = F.session_window("timestamp", "5 seconds")
    return {
        "plain": lambda: rows().select("value"),
        "renamed": lambda: rows().select(F.col("value").alias("key")),
        "filtered": lambda: rows().where("value > 1"),
        "filtered otherwise": lambda: rows().where("value > 2"),
        "udf": lambda: rows().select(udf(lambda value: value + 1, "long")("value")),
        "another type of udf": lambda: rows().select(udf(lambda value: value + 1, "int")("value")),
        "pandas": lambda: rows().select(halved("value")),
        "map": lambda: rows().mapInPandas(lambda frames: frames, "timestamp TIMESTAMP, value LONG"),
        "count": lambda: rows().groupBy("value").count(),
        "window": windows,
        "sessions": lambda: rows().groupBy(window_of_sessions, "value").count(),
        "static": lambda: rows().join(table(), "value").select("value", "name"),
        "streams": lambda: rows().alias("a").join(rows().alias("b"), F.expr("a.value = b.value")).select("a.value"),
        "union": lambda: rows().union(rows()),
        "exploded": lambda: rows().select(F.explode(F.array("value", F.col("value") + 1))),
        "lambda": lambda: rows().select(F.transform(F.array("value"), lambda one: one * 2)),
        "random": lambda: rows().select("value", F.rand(), F.expr("uuid()"), F.current_timestamp()),
        "sampled": lambda: rows().sample(0.5),
        "duplicates": lambda: rows().dropDuplicates(["value"]),
        "view": lambda: view(spark, rows()),
        "struct": lambda: rows().select(F.to_json(F.struct("*")).alias("value")),
    }


def view(spark: SparkSession, rows: DataFrame) -> DataFrame:
    # A name that differs from process to process.
    name = f"rows_{random.randrange(10**9)}"
    rows.createTempView(name)
    return spark.sql(f"WITH large AS (SELECT value FROM {name} WHERE value > 5) SELECT value FROM large")


def fingerprints(session: SparkSession) -> dict[str, str]:
    # Other work of the application: Spark counts its ids on.
    for _ in range(random.randrange(5)):
        session.range(3).selectExpr("id + 1 AS next").collect()
    jvm = session._jvm
    assert jvm is not None
    fingerprint = getattr(jvm, f"{SINK_PACKAGE}.identity.QueryFingerprint")
    columns = getattr(jvm, f"{SINK_PACKAGE}.kafka.RecordColumns").Names()
    found = {
        name: fingerprint.of(jvm.scala.Option.apply("topic"), columns, query()._jdf.queryExecution().analyzed())
        for name, query in queries(session).items()
    }
    plain = queries(session)["plain"]()._jdf.queryExecution().analyzed()
    found["another topic"] = fingerprint.of(jvm.scala.Option.apply("other"), columns, plain)
    found["no topic"] = fingerprint.of(jvm.scala.Option.empty(), columns, plain)
    return found


def main() -> None:
    builder = tailrace.configure(SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false"))
    session = builder.getOrCreate()
    found = fingerprints(session)
    session.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
