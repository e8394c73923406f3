"""Measure how long the streaming shuffle takes at the start of each epoch, from Spark's own log.

In every epoch, each writer starts a server. Each reader asks the driver every ten milliseconds until it knows all
writers, and connects to each of them. Prints a table of docs/benchmarks/epoch-boundaries.md.
"""

from __future__ import annotations

import re
import statistics
import tempfile
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import tailrace
from benchmarks.common import print_table
from benchmarks.one_jvm import Work, in_a_jvm
from tailrace.loadtest.machine import describe_machine

LOGGING = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} [%t] %m%n
"""
COLD_EPOCHS = 25


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, tailrace.EmbeddedKafka() as kafka:
        log, logging = Path(folder) / "shuffle.log", Path(folder) / "log4j2.properties"
        logging.write_text(LOGGING.format(log=log))
        settings = {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}"}
        work = Work(
            kafka.bootstrap_servers,
            ("keyed aggregation",),
            settings=settings,
            epoch_s=2,
            seconds=30,
            warm_up_epochs=COLD_EPOCHS,
        )
        [found] = in_a_jvm(work)
        taken = steps(log.read_text().splitlines())
    print(f"2 writers, 2 readers, {len(found['pauses_ms'])} warm boundaries. {describe_machine()}.\n")
    print_table(
        ["at the start of an epoch, ms", "median", "longest"],
        ([what, f"{statistics.median(values):.0f}", f"{max(values):.0f}"] for what, values in taken.items()),
    )
    launch = found["pause"]["parts_ms"]["launch"]
    print(f"The whole launch takes {launch:.0f} ms (median), the pause {found['pause']['median_ms']:.0f} ms.")


def steps(lines: list[str]) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = defaultdict(list)
    creating: dict[str, datetime] = {}
    for line in lines:
        # A message may have several lines.
        if not re.match(r"\d{4}-\d\d-\d\dT", line):
            continue
        at = datetime.fromisoformat(line.split(" ")[0].replace(",", "."))
        thread = line.partition("[")[2].partition("]")[0]
        if "Creating shuffle server" in line:
            creating[thread] = at
        elif "Created shuffle server" in line and thread in creating:
            taken["a writer's server"].append((at - creating.pop(thread)).total_seconds() * 1000)
        elif connected := re.search(r"Successfully created connection to \S+ after (\d+) ms", line):
            taken["a reader's connection"].append(float(connected[1]))
        elif exited := re.search(r"Task discovery thread exited. Took (\d+) ms", line):
            taken["a reader knows all writers and is connected to each"].append(float(exited[1]))
    # Skip the first epochs, when the JVM is cold.
    return {what: values[2 * COLD_EPOCHS :] for what, values in taken.items()}


if __name__ == "__main__":
    main()
