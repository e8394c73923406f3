"""What is alive in the heap of a session's driver, which on a `local` master is also the executor."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pyspark.sql import SparkSession


def live_instances(spark: SparkSession) -> Counter[str]:
    """The number of objects of each class, after a garbage collection."""
    context: Any = spark.sparkContext
    jvm, gateway = context._jvm, context._gateway

    def array(kind: Any, *values: Any) -> Any:
        filled = gateway.new_array(kind, len(values))
        for index, value in enumerate(values):
            filled[index] = value
        return filled

    strings = jvm.java.lang.String
    # By reflection on the interface: Py4J looks at the server's class, which is not public.
    interface = jvm.java.lang.Class.forName("javax.management.MBeanServer")
    [invoke] = [method for method in interface.getMethods() if method.getName() == "invoke"]
    call = array(
        jvm.java.lang.Object,
        jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand"),
        "gcClassHistogram",
        array(jvm.java.lang.Object, array(strings)),
        array(strings, "[Ljava.lang.String;"),
    )
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    lines = str(invoke.invoke(server, call)).splitlines()
    counts: Counter[str] = Counter()
    for line in lines:
        match line.split():
            case [rank, instances, _, name, *_] if rank.endswith(":") and instances.isdigit():
                counts[name] += int(instances)
    return counts


def listeners(counts: Counter[str]) -> int:
    """The completion and failure listeners of tasks."""
    return sum(count for name, count in counts.items() if name.startswith("org.apache.spark.TaskContext$$anon$"))


def heap_bytes(spark: SparkSession) -> int:
    """The used heap, after a garbage collection."""
    jvm: Any = spark.sparkContext._jvm
    jvm.java.lang.System.gc()
    return int(jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed())
