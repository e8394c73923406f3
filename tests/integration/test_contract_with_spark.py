"""The Spark internals that the plugin names or calls are there, so that an upgrade fails with a list."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tailrace._spark.defaults import REAL_TIME_DEFAULTS

CLASSES_WE_TOUCH = [
    "org.apache.spark.api.plugin.SparkPlugin",
    "org.apache.spark.api.python.BasePythonRunner",
    "org.apache.spark.api.python.PythonRunner",
    "org.apache.spark.api.python.SpecialLengths",
    "org.apache.spark.sql.SparkSessionExtensions",
    "org.apache.spark.sql.catalyst.expressions.CurrentCatalog",
    "org.apache.spark.sql.catalyst.expressions.CurrentDatabase",
    "org.apache.spark.sql.catalyst.expressions.CurrentTimeZone",
    "org.apache.spark.sql.catalyst.expressions.CurrentUser",
    "org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation",
    "org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement",
    "org.apache.spark.sql.execution.CollectMetricsExec",
    "org.apache.spark.sql.execution.ColumnarRule",
    "org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec",
    "org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec",
    "org.apache.spark.sql.execution.exchange.ShuffleExchangeExec",
    "org.apache.spark.sql.execution.python.ArrowEvalPythonExec",
    "org.apache.spark.sql.execution.python.BatchEvalPythonExec",
    "org.apache.spark.sql.execution.python.MapInArrowExec",
    "org.apache.spark.sql.execution.python.MapInPandasExec",
    "org.apache.spark.sql.catalyst.plans.logical.TransformWithStateInPySpark",
    "org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation",
    "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkPythonBaseRunner",
    "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer",
    "org.apache.spark.sql.execution.python.streaming.ValueStateInfo",
    "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager$CancellableFSDataOutputStream",
    "org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec",
    "org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter",
    "org.apache.spark.sql.execution.streaming.operators.stateful.join.JoinStateManagerStoreGenerator",
    "org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec",
    "org.apache.spark.sql.execution.streaming.sources.ForeachWriterTable",
    "org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend",
    "org.apache.kafka.common.header.internals.RecordHeader",
    "org.apache.spark.sql.execution.streaming.RealTimeTrigger",
    "org.apache.spark.sql.execution.streaming.runtime.RealTimeModeAllowlist",
    "org.apache.spark.util.MavenUtils",
]
METHODS_WE_CALL = {
    "org.apache.spark.sql.catalyst.expressions.SessionWindow$": {"marker"},
    "org.apache.spark.sql.execution.aggregate.BaseAggregateExec": {
        "aggregateAttributes",
        "aggregateExpressions",
        "groupingExpressions",
        "initialInputBufferOffset",
        "numShufflePartitions",
        "requiredChildDistributionExpressions",
        "resultExpressions",
    },
    "org.apache.spark.sql.execution.aggregate.MergingSessionsExec": {"sessionExpression"},
    "org.apache.spark.sql.execution.streaming.GenericBufferAggregationIterator": {"newAggregationBuffer"},
    "org.apache.spark.sql.execution.streaming.ProjectAggregationBufferExec": {"isFinalAggregate"},
    "org.apache.spark.sql.execution.streaming.operators.stateful.SessionWindowStateStoreRestoreExec": {
        "eventTimeWatermarkForLateEvents",
    },
    "org.apache.spark.sql.execution.streaming.operators.stateful.SessionWindowStateStoreSaveExec": {
        "applyRemovingRowsOlderThanWatermark",
        "keyWithoutSessionExpressions",
        "outputMode",
        "sessionExpression",
        "stateFormatVersion",
        "watermarkPredicateForDataForEviction",
        "watermarkPredicateForDataForLateEvents",
    },
    "org.apache.spark.sql.execution.streaming.operators.stateful.StreamingSessionWindowStateManager": {
        "getNumColsForPrefixKey",
        "getStateKeySchema",
        "getStateValueSchema",
        "removeByValueCondition",
    },
    "org.apache.spark.api.python.BasePythonRunner": {"newWriter"},
    "org.apache.spark.api.python.BasePythonRunner$Writer": {"open", "exception"},
    "org.apache.spark.api.python.LocalPythonWorkerHandle": {"pid", "terminationDiagnostics"},
    "org.apache.spark.api.python.PythonWorkerUtils": {"readUTF", "receiveAccumulatorUpdates", "writeBytes"},
    "org.apache.spark.sql.execution.python.ArrowPythonRunner": {"getPythonRunnerConfMap"},
    "org.apache.spark.sql.execution.python.BatchEvalPythonExec": {"getInputIterator"},
    "org.apache.spark.sql.execution.python.EvaluatePython": {"makeFromJava", "registerPicklers", "toJava"},
    "org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor."
    "ImplicitGroupingKeyTracker": {"setImplicitKey"},
    "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan": {"isStateful"},
    "org.apache.spark.sql.catalyst.trees.TreePattern": {"CURRENT_LIKE"},
    "org.apache.spark.sql.catalyst.analysis.ResolveDeduplicate": {"computeKeys"},
    "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker": {
        "checkAdditionalRealTimeModeConstraints",
        "checkForStreaming",
    },
    "org.apache.spark.sql.execution.ObjectOperator": {"deserializeRowToObject"},
    "org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateExec": {
        "child",
        "copy",
        "groupingAttributes",
        "hasInitialState",
        "isRealTimeMode",
        "keyDeserializer",
        "statefulProcessor",
        "timeMode",
    },
    # A processor of ours, with rows as Spark has them.
    "org.apache.spark.sql.catalyst.encoders.ExpressionEncoder$": {"apply"},
    "org.apache.spark.sql.catalyst.encoders.RowEncoder$": {"encoderFor"},
    "org.apache.spark.sql.catalyst.plans.logical.SerializeFromObject": {"serializer"},
    "org.apache.spark.sql.catalyst.plans.logical.TransformWithState": {
        "dataAttributes",
        "groupingAttributes",
        "keyEncoder",
        "outputObjAttr",
        "valueDeserializer",
    },
    "org.apache.spark.sql.catalyst.util.IntervalUtils": {"getDuration", "stringToInterval"},
    "org.apache.spark.sql.classic.Dataset": {"ofRows"},
    "org.apache.spark.sql.streaming.StatefulProcessorHandle": {"getValueState"},
    "org.apache.spark.sql.streaming.StatefulProcessor": {
        "getHandle",
        "handleExpiredTimer",
        "handleInputRows",
        "setHandle",
    },
    "org.apache.spark.sql.catalyst.expressions.InterpretedPredicate": {"eval"},
    "org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec": {"delayMs"},
    "org.apache.spark.sql.execution.streaming.operators.stateful.WatermarkSupport$": {
        "findEventTimeColumn",
        "watermarkExpression",
    },
    "org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec": {
        "condition",
        "eventTimeWatermarkForEviction",
        "eventTimeWatermarkForLateEvents",
        "outputMode",
        "stateFormatVersion",
        "stateStoreNames",
        "stateWatermarkPredicates",
    },
    "org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper": {
        "StateStoreAwareZipPartitionsHelper",
        "getStateWatermark",
        "getStateWatermarkPredicates",
    },
    "org.apache.spark.sql.execution.streaming.operators.stateful.join.SupportsEvictByCondition": {
        "evictAndReturnByKeyCondition",
        "evictAndReturnByValueCondition",
        "evictByKeyCondition",
        "evictByValueCondition",
    },
    "org.apache.spark.sql.execution.streaming.operators.stateful.join.SupportsEvictByTimestamp": {
        "evictAndReturnByTimestamp",
        "evictByTimestamp",
    },
    "org.apache.spark.sql.execution.streaming.operators.stateful.join.SymmetricHashJoinStateManager": {
        "append",
        "apply",
        "commit",
        "getJoinedRows",
        "getJoinedRowsAndRemoveMatched",
        "getLatestCheckpointInfo",
        "getStateStoreCheckpointIds",
        "mergeStateStoreCheckpointInfo",
        "metrics",
    },
    "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager": {
        "create",
        "createAtomic",
        "createCheckpointDirectory",
        "list",
        "mkdirs",
    },
    "org.apache.spark.sql.catalyst.expressions.XXH64": {"hashUnsafeBytes"},
    "org.apache.spark.sql.connector.read.streaming.ReportsSinkMetrics": {"metrics"},
    "org.apache.spark.sql.internal.SharedState": {"activeStreamingQueries"},
    "org.apache.spark.kafka010.KafkaConfigUpdater": {"build", "setAuthenticationConfigIfNeeded"},
    "org.apache.kafka.clients.producer.KafkaProducer": {
        "beginTransaction",
        "close",
        "commitTransaction",
        "flush",
        "initTransactions",
        "send",
    },
    "org.apache.kafka.clients.consumer.KafkaConsumer": {
        "assign",
        "beginningOffsets",
        "endOffsets",
        "partitionsFor",
        "poll",
        "position",
        "seek",
    },
    "org.apache.kafka.clients.producer.RecordMetadata": {"offset", "partition", "topic"},
    "org.apache.kafka.common.header.Headers": {"lastHeader"},
    "org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata": {"setSessionConf", "conf"},
    "org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution": {"executedPlan", "isRealTimeMode"},
    "org.apache.spark.sql.execution.streaming.runtime.StreamExecution": {
        "analyzedPlan",
        "committedOffsets",
        "getLatestExecutionContext",
        "outputMode",
        "resolvedCheckpointRoot",
        "sink",
        "trigger",
    },
    "org.apache.spark.sql.execution.CollectMetricsExec": {"collectedMetrics", "resetMetrics"},
    "org.apache.spark.sql.execution.datasources.v2.LowLatencyClock": {"getTimeMillis", "setClock"},
    "org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream": {
        "addData",
        "createReaderFactory",
        "deserializeOffset",
        "latestOffset",
    },
    "org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStreamOffset": {"partitionNums"},
    "org.apache.spark.sql.classic.StreamingQueryManager": {"startQuery"},
    "org.apache.spark.util.ManualClock": {"advance", "getTimeMillis", "waitTillTime"},
    "org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec": {
        "batchDurationMs",
        "copy",
        "inputPartitions",
        "readerFactory",
        "scan",
        "start",
    },
    "org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead": {"getOffset", "nextWithTimeout"},
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution": {"BATCH_ID_KEY"},
    "org.apache.spark.SparkThrowable": {"getSqlState"},
    "org.apache.spark.sql.catalyst.plans.logical.TransformWithStateInPySpark": {
        "copy",
        "leftAttributes",
        "rightAttributes",
        "userFacingDataType",
    },
    "org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2Relation": {"realTimeModeDuration"},
    "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec": {
        "copy",
        "requiredChildOrdering",
        "validateAndMaybeEvolveStateSchema",
        "validateAndWriteStateSchema",
    },
    "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer": {"handleTimerRequest"},
    "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkPythonBaseRunner": {
        "closeServerSocketChannelSilently",
        "initStateServer",
    },
    "org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor."
    "StatefulProcessorHandleImpl": {"doTtlCleanup", "getExpiredTimers", "registerTimer"},
    "org.apache.spark.sql.execution.streaming.state.StateStore": {"commit", "get"},
    "org.apache.spark.util.NextIterator": {"closeIfNeeded"},
    "org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite": {"writeSupport"},
    # Of the connector, called by their shape.
    "org.apache.spark.sql.kafka010.KafkaBatchInputPartition": {"offsetRange"},
    "org.apache.spark.sql.kafka010.KafkaMicroBatchStream": {"kafkaOffsetReader"},
    "org.apache.spark.sql.kafka010.KafkaOffsetRange": {"fromOffset", "topicPartition"},
    "org.apache.spark.sql.kafka010.KafkaOffsetReaderAdmin": {"driverKafkaParams"},
    "org.apache.spark.sql.kafka010.ConsumerStrategy": {"assignedTopicPartitions", "createAdmin", "createConsumer"},
    "org.apache.kafka.clients.consumer.Consumer": {"assign", "poll", "seekToEnd", "unsubscribe"},
    "org.apache.kafka.clients.consumer.ConsumerRecord": {"timestamp", "timestampType"},
    "org.apache.kafka.clients.admin.Admin": {"close", "create", "listOffsets"},
    "org.apache.kafka.clients.admin.OffsetSpec": {"latest"},
    "org.apache.spark.sql.SparkSessionExtensions": {
        "injectColumnar",
        "injectHintResolutionRule",
        "injectPlannerStrategy",
        "injectPreCBORule",
    },
    "org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement": {"inputQuery", "outputMode", "sink", "trigger"},
    "org.apache.spark.util.ThreadUtils": {"newDaemonSingleThreadScheduledExecutor"},
    "org.apache.spark.util.MavenUtils": {"buildIvySettings", "loadIvySettings", "resolveMavenCoordinates"},
}
FIELDS_WE_OPEN = {
    "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer": {"outputStream"},
    "org.apache.spark.sql.execution.python.streaming.PythonForeachWriter": {"func", "schema"},
    "org.apache.spark.sql.kafka010.KafkaRowWriter": {"callback"},
    "org.apache.spark.sql.kafka010.KafkaOffsetReaderAdmin": {"consumerStrategy"},
    "org.apache.spark.sql.classic.DataStreamWriter": {
        "ds",
        "extraOptions",
        "foreachWriter",
        "outputMode",
        "source",
        "trigger",
    },
}
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


def test_classes_of_the_engine(jvm: Any) -> None:
    assert [name for name in CLASSES_WE_TOUCH if class_for(jvm, name) is None] == []


def test_methods_of_the_engine(jvm: Any) -> None:
    missing = []
    for name, wanted in METHODS_WE_CALL.items():
        found = {method.getName() for method in class_for(jvm, name).getMethods()}
        missing += [f"{name}.{method}" for method in sorted(wanted - found)]
    assert missing == []


def test_the_client_of_pysparks_state_server() -> None:
    """`EpochClient` sits on these; a call that PySpark adds would go past what it remembers."""
    for name, wanted in CALLS_TO_THE_STATE_SERVER.items():
        module, _, client = name.rpartition(".")
        calls = {
            call for call, value in vars(getattr(importlib.import_module(module), client)).items() if callable(value)
        }
        assert calls == wanted, name


def test_fields_of_the_engine(jvm: Any) -> None:
    missing = []
    for name, wanted in FIELDS_WE_OPEN.items():
        found = {field.getName().rpartition("$$")[2] for field in class_for(jvm, name).getDeclaredFields()}
        missing += [f"{name}.{field}" for field in sorted(wanted - found)]
    assert missing == []


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
