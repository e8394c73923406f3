"""Flink: its own operators in the JVM, described in SQL through PyFlink, so that nobody has to build Java."""

from __future__ import annotations

import sys
from typing import Any

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment

from ..job import Job

RECORD = "number BIGINT, intended_ns BIGINT, `key` STRING, id BIGINT, amount BIGINT, text STRING"


def run(job: Job, workload: Any) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment(configuration(job))
    environment.set_parallelism(job.partitions)
    tables = StreamTableEnvironment.create(environment)
    columns = getattr(workload, "INPUT", RECORD)
    input_format = getattr(workload, "INPUT_FORMAT", "json")
    for number, topic in enumerate(job.input_topics):
        tables.execute_sql(
            f"CREATE TABLE input{number or ''} ({columns}{getattr(workload, 'EVENT_TIME', '')}) WITH ("
            f"'connector' = 'kafka', 'topic' = '{topic}', 'format' = '{input_format}', "
            f"'properties.bootstrap.servers' = '{job.bootstrap_servers}', 'properties.group.id' = '{topic}', "
            "'scan.startup.mode' = 'earliest-offset')"
        )
    tables.execute_sql(_output(job, workload))
    tables.execute_sql(f"INSERT INTO answers {workload.QUERY}").wait()


def configuration(job: Job) -> Configuration:
    """Tuned for latency, as Flink's documentation advises."""
    settings = {
        "pipeline.jars": ";".join(f"file://{jar}" for jar in job.jars),
        # A record leaves its buffer at once, and operators of a chain hand it on without a copy.
        "execution.buffer-timeout.interval": "0 ms",
        "pipeline.object-reuse": "true",
        "execution.checkpointing.interval": f"{job.checkpoint_s} s",
        "execution.checkpointing.dir": f"file://{job.folder}/checkpoints",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.num-retained": "1000",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "state.backend.type": "rocksdb",
        # A failure ends the job, so the harness sees it.
        "restart-strategy.type": "none",
        "table.exec.mini-batch.enabled": "false",
        "taskmanager.memory.network.min": "64mb",
        "taskmanager.numberOfTaskSlots": str(2 * job.partitions),
        "parallelism.default": str(job.partitions),
        "python.execution-mode": "thread",
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        "io.tmp.dirs": job.folder,
        "rest.port": "0",
    }
    configured = Configuration()
    for key, value in settings.items():
        configured.set_string(key, value)
    return configured


def _output(job: Job, workload: Any) -> str:
    """Rows that replace earlier ones go to `upsert-kafka`, one record for each update."""
    common = (
        f"'topic' = '{job.output_topic}', 'properties.bootstrap.servers' = '{job.bootstrap_servers}', "
        "'properties.linger.ms' = '0', 'sink.delivery-guarantee' = 'at-least-once'"
    )
    value_format = getattr(workload, "OUTPUT_FORMAT", "json")
    if primary_key := getattr(workload, "PRIMARY_KEY", None):
        return (
            f"CREATE TABLE answers ({workload.OUTPUT}, PRIMARY KEY ({primary_key}) NOT ENFORCED) WITH ("
            f"'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = '{value_format}', {common})"
        )
    return (
        f"CREATE TABLE answers ({workload.OUTPUT}) WITH ('connector' = 'kafka', 'format' = '{value_format}', {common})"
    )
