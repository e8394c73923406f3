"""`tailrace-postgresql`: SIGKILL of the whole application, and servers that go away, while rows flow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace import EmbeddedKafka, EmbeddedPostgres
from tests.helpers.postgres import Table
from tests.helpers.topics import ContinuousLoad, new_topic
from tests.helpers.waiting import let_pass, until

KILLS = 4
SOON_S = 120

# A row of an aggregate appears in `history` each time it is written.
HISTORY = """
CREATE TABLE history (position bigserial, key text, n bigint);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO history (key, n) VALUES (NEW.key, NEW.n); RETURN NEW; END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON {0} FOR EACH ROW EXECUTE FUNCTION note()
"""

APPLICATION = """
import sys
from pyspark.sql import SparkSession, functions as F
import tailrace

servers, topic, url, password_file, rows_table, counts_table, checkpoint = sys.argv[1:]
builder = SparkSession.builder.master("local[8]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.tailrace.warmup.epochs", "0")
spark = tailrace.configure(builder, postgresql_driver=True).getOrCreate()

def start(name, query, table, **options):
    writer = query.writeStream.format("tailrace-postgresql").queryName(name).outputMode("update")
    writer = writer.option("url", url).option("user", "tailrace").option("passwordFile", password_file)
    writer = writer.option("dbtable", table).option("checkpointLocation", f"{checkpoint}/{name}").options(**options)
    return writer.trigger(realTime="5 seconds").start()

def rows():
    read = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    read = read.option("subscribe", topic).option("startingOffsets", "earliest").load()
    parsed = F.from_json(F.col("value").cast("string"), "id LONG, key STRING").alias("row")
    return read.select(parsed).select("row.*")

start("rows", rows().select("id"), rows_table)
counts = rows().groupBy("key").agg(F.count("*").alias("n"))
start("counts", counts, counts_table, keyColumns="key")
spark.streams.awaitAnyTermination()
"""


@pytest.mark.chaos
def test_nothing_is_lost_duplicated_or_steps_back(
    kafka: EmbeddedKafka, postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    topic = new_topic(kafka.bootstrap_servers, "in")
    rows = Table(postgres, "id bigint")
    counts = Table(postgres, "key text PRIMARY KEY, n bigint", keys="key")
    postgres.execute(HISTORY.format(counts.name))
    script = tmp_path / "application.py"
    script.write_text(APPLICATION)
    arguments = [kafka.bootstrap_servers, topic, postgres.url, postgres.password_file]
    command = [sys.executable, str(script), *arguments, rows.name, counts.name, str(tmp_path / "checkpoint")]

    def counted() -> int:
        return int(counts.select("coalesce(sum(n), 0)")[0][0] or 0)

    def written() -> int:
        return len(rows.ids())

    def wait_for(number: int) -> None:
        until(lambda: min(written(), counted()) >= number, "more rows", within_s=SOON_S)

    def start() -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    with ContinuousLoad(kafka.bootstrap_servers, topic, per_second=300) as load:
        for number in range(KILLS):
            application = start()
            wait_for(min(written(), counted()) + 300)
            # Different places in the epoch, and once while the server is away.
            let_pass(0.7 * number)
            if number == 2:
                postgres.kill()
            os.killpg(application.pid, signal.SIGKILL)
            application.wait()
            postgres.start()
        application = start()
        load.stop()
        until(lambda: len(set(rows.ids())) == load.sent, "all rows", within_s=SOON_S)
        until(lambda: counted() == load.sent, "everything is counted", within_s=SOON_S)
        os.killpg(application.pid, signal.SIGKILL)
        application.wait()
    assert rows.ids() == list(range(load.sent))
    changes = postgres.execute("SELECT n - lag(n) OVER (PARTITION BY key ORDER BY position) FROM history")
    steps = [int(step) for (step,) in changes if step is not None]
    assert steps
    assert min(steps) > 0, "a value was written again, or stepped back"
