"""A secured broker, a user of it, and a query of that user."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tailrace._kafka.cluster import client_settings
from tailrace.chaos.topics import Read, read_all
from tailrace.kafka import EmbeddedKafka, KafkaCluster, Login

USER = "app"
Right = tuple[str, str, str]


@dataclass
class Secured:
    """Topics on a secured broker, and what the user may do with them."""

    kafka: EmbeddedKafka
    folder: Path

    def __post_init__(self) -> None:
        tag = uuid.uuid4().hex[:8]
        self.input, self.output, self.letters = (f"{name}-{tag}" for name in ("in", "out", "letters"))
        self.kafka.create_topics([self.input, self.output, self.letters], partitions=2)
        self.rights: tuple[Right, ...] = (
            ("read", "topic", self.input),
            ("read", "topic", self.output),
            ("write", "topic", self.output),
            ("write", "topic", self.letters),
            ("write", "transactional-id", "tailrace-*"),
        )
        for right in self.rights:
            self.kafka.grant(USER, *right)

    def options(self, login: Login = Login.SCRAM) -> dict[str, str]:
        return self.kafka.cluster(USER, login).spark_options()

    def rows(self, spark: SparkSession, options: dict[str, str]) -> DataFrame:
        reader = spark.readStream.format("kafka").options(**options).option("subscribe", self.input)
        return reader.option("startingOffsets", "earliest").load().select(F.col("value").cast("string"))

    def writer(
        self,
        spark: SparkSession,
        options: dict[str, str] | None = None,
        *,
        sink_options: dict[str, str] | None = None,
        sink: str = "tailrace-kafka",
        **more: str,
    ) -> Any:
        """Copies rows, in transactions; a row `bad` is a dead letter."""
        read = options or self.options()
        fail_on_bad = F.udf(lambda text: f"{text}" if text != "bad" else str(1 / 0), "string")
        writer = (
            self.rows(spark, read)
            .select(fail_on_bad("value").alias("value"))
            .writeStream.format(sink)
            .options(**(sink_options or read))
            .option("topic", self.output)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .option("onError", "dead-letter")
            .option("deadLetterTopic", self.letters)
            .outputMode("update")
            .queryName("secured")
            .options(**({"transactionInterval": "20ms"} if sink == "tailrace-kafka" else {}))
            .options(**more)
        )
        return writer.trigger(realTime="5 minutes")  # type: ignore[call-overload]

    def send(self, *values: str) -> None:
        producer = Producer(client_settings(self.kafka.cluster()))
        for value in values:
            producer.produce(self.input, value=value)
        assert producer.flush(60) == 0

    def written(self, topic: str | None = None) -> list[str]:
        found: list[Read] = read_all(self.kafka.cluster(), topic or self.output)
        return sorted(read.value.decode() for read in found)


def with_wrong_password(cluster: KafkaCluster) -> KafkaCluster:
    jaas = cluster.properties["sasl.jaas.config"].replace('password="', 'password="not-')
    return KafkaCluster(cluster.bootstrap_servers, {**cluster.properties, "sasl.jaas.config": jaas})


def properties_file(cluster: KafkaCluster, file: Path) -> Path:
    file.write_text("".join(f"{key}={value}\n" for key, value in cluster.to_dict().items()), encoding="utf-8")
    file.chmod(0o600)
    return file
