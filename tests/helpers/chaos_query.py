"""A user's own query for chaos runs: a script between two topics, right or wrong as asked."""

from __future__ import annotations

import io
import textwrap
from pathlib import Path

from rich.console import Console

from tailrace import EmbeddedKafka
from tailrace.chaos import ChaosOptions, ChaosResult, ChaosView, UsersQuery, run_chaos
from tests.helpers.topics import new_topic

# Between the user's topics, from a checkpoint. The last argument makes the query right or wrong.
SCRIPT = """
import pathlib
import sys
from pyspark.sql import SparkSession, functions as F
import tailrace

servers, source, target, checkpoint, what = sys.argv[1:]
spark = tailrace.configure(SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false")).getOrCreate()
rows = (
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", source)
    .option("startingOffsets", "earliest").load()
    .select(F.from_json(F.col("value").cast("string"), "payment LONG, card STRING").alias("row")).select("row.*")
)
if what == "stale":
    # Wrong from the second start on, and right again when the harness starts it once more, for the references.
    starts = pathlib.Path(checkpoint + "-starts")
    starts.write_text((starts.read_text() if starts.exists() else "") + "x")
    rows = rows.withColumn("score", F.lit(0) if starts.read_text() == "xx" else F.col("payment") * 2)
if what == "wrong":
    rows = rows.where("payment % 100 != 17")
    twice = F.when(F.col("payment") % 100 == 18, F.array(F.lit(1), F.lit(2))).otherwise(F.array(F.lit(1)))
    rows = rows.select("*", F.explode(twice)).drop("col")
query = (
    rows.select(F.col("card").alias("key"), F.to_json(F.struct("*")).alias("value"))
    .writeStream.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", target)
    .option("checkpointLocation", checkpoint).outputMode("update").trigger(realTime="5 seconds").start()
)
query.awaitTermination()
"""


def wrong_query(kafka: EmbeddedKafka, folder: Path, what: str = "wrong") -> UsersQuery:
    """Loses one row in a hundred, and duplicates another one; or, if "stale", has wrong values after a restart."""
    script = folder / "app.py"
    script.write_text(textwrap.dedent(SCRIPT))
    source, target = (new_topic(kafka.bootstrap_servers, name) for name in ("in", "out"))
    return UsersQuery(
        script,
        (kafka.bootstrap_servers, source, target, str(folder / "checkpoint"), what),
        kafka.bootstrap_servers,
        source,
        target,
        id_field="payment",
        template='{"payment": $id, "card": "$key"}',
    )


def run_silently(options: ChaosOptions) -> ChaosResult:
    return run_chaos(options, ChaosView(Console(file=io.StringIO())))
