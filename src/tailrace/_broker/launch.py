"""Starting the broker's JVM, and waiting until it answers."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tailrace._broker.admin import SILENT
from tailrace._broker.properties import properties_file
from tailrace._kafka.cluster import Servers, client_settings
from tailrace._process.ports import port_taken
from tailrace._spark.java import require_java
from tailrace._spark.plugin import plugin_jar, spark_jars
from tailrace.errors import BrokerError

READY_WITHIN_S = 60

# A throw-away broker should start fast and stay small: no second compiler tier to warm up, and a collector without
# helper threads, which would take cores from Spark.
JVM_FLAGS = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def launch(
    folder: Path, jars: list[Path], log: Path, *, owned: bool, scram_users: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a broker on `folder`, which holds its properties. An owned broker ends with this process.

    :param scram_users: a file with users and passwords, which are added to a new broker.
    """
    scala_library = spark_jars().glob("scala-library-*.jar")
    class_path = os.pathsep.join(map(str, [plugin_jar(), *jars, *scala_library]))
    has_data = (folder / "data" / "meta.properties").exists()
    cluster_id = "-" if has_data else urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    command = [require_java().command, *JVM_FLAGS]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dorg.slf4j.simpleLogger.showDateTime=true"]
    command += ["-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS"]
    command += ["-cp", class_path, "org.apache.spark.sql.tailrace.internals.kafka.OwnedBroker"]
    command += [str(properties_file(folder)), cluster_id, str(folder) if owned else "-"]
    # The name of a file: a password in the arguments could be read by every user of this machine.
    command += [str(scram_users or "-")]
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE if owned else subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C in the terminal is for the owner, which then stops the broker when it is ready to.
            start_new_session=True,
        )


def wait_until_ready(process: subprocess.Popen[bytes], bootstrap_servers: Servers, log: Path) -> None:
    admin = AdminClient(client_settings(bootstrap_servers, {"log_level": 0}), logger=SILENT)
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            text = log.read_text(encoding="utf-8", errors="replace")
            if "Address already in use" in text:
                raise port_taken(int(str(bootstrap_servers).rpartition(":")[2]))
            last_line = next(reversed(text.splitlines()), "it printed nothing")
            raise _not_started(f"ended with code {process.returncode}: {last_line}", log)
        try:
            if admin.list_topics(timeout=0.5).brokers:
                return
        except KafkaException:
            time.sleep(0.05)
    raise _not_started(f"did not become ready within {READY_WITHIN_S} s.", log)


def _not_started(what_happened: str, log: Path) -> BrokerError:
    problem = f"the embedded Kafka broker {what_happened}"
    return BrokerError("TAILRACE_BROKER_NOT_STARTED", problem, f"read its log: {log}")
