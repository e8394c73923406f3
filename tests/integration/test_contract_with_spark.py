"""Spark has the internals that the plugin calls or reaches by name; after an upgrade, this lists what is missing."""

from __future__ import annotations

import importlib
import re
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tailrace._spark import maven
from tailrace._spark.defaults import REAL_TIME_DEFAULTS
from tailrace._spark.plugin import plugin_jar, spark_jars
from tests.helpers.class_files import ClassPath, Reference, references_of

ROOT = Path(__file__).resolve().parents[2]

# Packages that the plugin's classes refer to and that it does not bring; its own inherit from them.
OTHERS_PACKAGES = ("org/apache/spark/", "org/apache/kafka/", "tailrace/")
# What `tailrace_worker` puts its own in the place of, or calls.
NAMES_IN_PYSPARKS_WORKER = {
    "pyspark.daemon": {"manager", "worker"},
    "pyspark.sql.conversion": {"ArrowBatchTransformer", "PandasToArrowConversion"},
    "pyspark.sql.streaming.proto.StateMessage_pb2": {
        "AppendList",
        "ListStatePut",
        "SetImplicitKey",
        "StateRequest",
        "TimerStateCallCommand",
        "UpdateValue",
        "ValueStateUpdate",
    },
    "pyspark.sql.streaming.stateful_processor": {
        "ListStateClient",
        "ListStateIterator",
        "MapStateClient",
        "MapStateIterator",
        "MapStateKeyValuePairIterator",
        "ValueStateClient",
    },
    "pyspark.sql.streaming.stateful_processor_api_client": {"_load_numpy", "_normalize_state_value", "has_numpy"},
    "pyspark.sql.streaming.stateful_processor_util": {"TransformWithStateInPandasFuncMode"},
    "pyspark.worker": {
        "handle_worker_exception",
        "invoke_udf",
        "main",
        "read_command",
        "read_single_udf",
        "read_udfs",
    },
    "pyspark.worker_util": {"get_sock_file_to_executor"},
    "pyspark.serializers": {"CPickleSerializer", "SpecialLengths", "write_int"},
}
# Spark has not got round to these; our tests compare them with micro-batch.
ADMITTED_BY_TESTS = {
    "org.apache.spark.sql.execution.streaming.operators.stateful.StreamingDeduplicateWithinWatermarkExec"
}
CALLS_TO_THE_STATE_SERVER = {
    "pyspark.sql.streaming.value_state_client.ValueStateClient": {"__init__", "clear", "exists", "get", "update"},
    "pyspark.sql.streaming.list_state_client.ListStateClient": {
        *("__init__", "append_list", "append_value", "clear", "exists", "get", "put"),
    },
    "pyspark.sql.streaming.map_state_client.MapStateClient": {
        *("__init__", "clear", "contains_key", "exists", "get_key_value_pair", "get_row", "get_value"),
        *("remove_key", "update_value"),
    },
}
SETTINGS_WE_USE = [
    "spark.sql.streaming.multipleWatermarkPolicy",
    "spark.sql.streaming.realTimeMode.allowlistCheck",
    "spark.sql.streaming.realTimeMode.minBatchDuration",
    "spark.sql.streaming.streamingQueryListeners",
    *(default.key for default in REAL_TIME_DEFAULTS),
]


@pytest.fixture(scope="module")
def jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm


def class_for(jvm: Any, name: str) -> Any:
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        return jvm.java.lang.Class.forName(name, False, loader)
    except Py4JJavaError:
        return None


def test_the_plugin_links_to_this_installation(spark: SparkSession, jvm: Any) -> None:
    """Every class and member that the compiled plugin names is there: Kafka's client is compiled against stubs."""
    jars = [Path(urlsplit(jar).path) for jar in spark.sparkContext.getConf().get("spark.jars", "").split(",")]
    references = references_of(plugin_jar(), to=OTHERS_PACKAGES)
    owners = {reference.owner for reference in references}
    assert "org/apache/kafka/clients/producer/KafkaProducer" in owners
    assert "org/apache/spark/sql/execution/datasources/v2/RealTimeStreamScanExec" in owners

    def names_in_jdk(name: str) -> set[str]:
        found = class_for(jvm, name.replace("/", "."))
        return {member.getName() for member in [*found.getMethods(), *found.getFields()]} if found else set()

    with closing(ClassPath([*spark_jars().glob("*.jar"), *jars, plugin_jar()], names_in_jdk)) as installed:
        assert not installed.has(Reference("org/apache/kafka/clients/producer/KafkaProducer", "flush", "(I)V", False))
        missing = [reference for reference in references if not installed.has(reference)]
    assert [str(reference) for reference in sorted(missing, key=str)] == []


def test_what_the_plugin_reaches_by_name(jvm: Any) -> None:
    members = jvm.org.apache.spark.sql.tailrace.internals.ReflectedMembers
    named = set(members.ofSession())
    assert "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution.extraOptions" in named
    assert "org.apache.spark.sql.kafka010.KafkaRowWriter.callback" in named
    assert list(members.missing()) == []


def test_what_the_embedded_broker_calls_by_name(jvm: Any) -> None:
    calls = [call.partition("(")[0] for call in jvm.org.apache.spark.sql.tailrace.internals.ReflectedMembers.ofBroker()]
    assert "kafka.Kafka.main" in calls
    with closing(ClassPath(maven.resolve(maven.KAFKA_BROKER), lambda _: set())) as broker:
        for class_name, _, method in (call.rpartition(".") for call in calls):
            found = broker.find(class_name.replace(".", "/"))
            assert found is not None, class_name
            assert method in {name for name, _ in found.members}, class_name


def test_all_that_reach_by_name_are_listed() -> None:
    internals = ROOT / "jvm/src/org/apache/spark/sql/tailrace/internals"
    sources = [file.read_text(encoding="utf-8") for file in internals.rglob("*.scala")]
    users = {name for source in sources for name in re.findall(r"object (\w+) extends ByName", source)}
    listed = set(re.findall(r"^    (\w+)[,)]", (internals / "ReflectedMembers.scala").read_text(), re.MULTILINE))
    assert users - {"OwnedBroker"} == listed


def test_the_client_of_pysparks_state_server() -> None:
    """`EpochStateClient` overrides these; a call that PySpark adds would bypass its cache."""
    for name, wanted in CALLS_TO_THE_STATE_SERVER.items():
        module, _, client = name.rpartition(".")
        calls = {
            call for call, value in vars(getattr(importlib.import_module(module), client)).items() if callable(value)
        }
        assert calls == wanted, name


def test_names_in_pysparks_worker() -> None:
    missing = []
    for name, wanted in NAMES_IN_PYSPARKS_WORKER.items():
        module = importlib.import_module(name)
        missing += [f"{name}.{attribute}" for attribute in sorted(wanted) if not hasattr(module, attribute)]
    assert missing == []


def test_classes_in_the_support_registry(jvm: Any) -> None:
    registry = [*rows(jvm.tailrace.support.Operators.all()), *rows(jvm.tailrace.support.Sinks.all())]
    names = {row.className() for row in registry}
    assert len(names) > 40
    assert sorted(name for name in names if class_for(jvm, name) is None) == []


def test_our_registry_is_at_least_as_strict_as_sparks_allowlist(jvm: Any) -> None:
    """Everything of Spark's that we admit, Spark admits too; the rest of what we admit is ours."""
    module = class_for(jvm, "org.apache.spark.sql.execution.streaming.runtime.RealTimeModeAllowlist$")
    for field, ours in (
        ("allowedOperators", jvm.tailrace.support.Operators.all()),
        ("allowedSinks", jvm.tailrace.support.Sinks.all()),
    ):
        allowlist = module.getDeclaredField(field)
        allowlist.setAccessible(True)
        allowed = allowlist.get(module.getField("MODULE$").get(None))
        admitted = {row.className() for row in rows(ours) if row.level().getClass().getSimpleName() == "Supported"}
        assert admitted
        not_sparks = {name for name in admitted if not allowed.contains(name)} - ADMITTED_BY_TESTS
        assert not_sparks
        assert sorted(name for name in not_sparks if not name.startswith("org.apache.spark.sql.tailrace.")) == []


def test_settings_of_the_engine(jvm: Any) -> None:
    find = jvm.org.apache.spark.internal.config.ConfigEntry.findEntry
    # One of them Spark reads without ever having made an entry of it.
    unregistered = jvm.org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS().parent().key()
    assert [key for key in SETTINGS_WE_USE if find(key) is None] == [unregistered]


def rows(sequence: Any) -> list[Any]:
    return [sequence.apply(position) for position in range(sequence.size())]
