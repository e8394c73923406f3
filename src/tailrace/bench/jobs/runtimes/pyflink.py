"""PyFlink: the DataStream API with Python functions, in thread mode: the interpreter runs inside Flink's JVM."""

from __future__ import annotations

from typing import Any

from pyflink.common import SimpleStringSchema, WatermarkStrategy
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)

from ..job import Job
from .flink import configuration


def run(job: Job, workload: Any) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment(configuration(job))
    environment.set_parallelism(job.partitions)
    answers: DataStream = workload.build(*(_read(environment, job, topic) for topic in job.input_topics))
    answers.sink_to(
        KafkaSink.builder()
        .set_bootstrap_servers(job.bootstrap_servers)
        .set_property("linger.ms", "0")
        .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
        .set_record_serializer(
            KafkaRecordSerializationSchema.builder()
            .set_topic(job.output_topic)
            .set_value_serialization_schema(SimpleStringSchema())
            .build()
        )
        .build()
    )
    environment.execute(job.workload)


def _read(environment: StreamExecutionEnvironment, job: Job, topic: str) -> DataStream:
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(job.bootstrap_servers)
        .set_topics(topic)
        .set_group_id(topic)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    return environment.from_source(source, WatermarkStrategy.no_watermarks(), topic)
