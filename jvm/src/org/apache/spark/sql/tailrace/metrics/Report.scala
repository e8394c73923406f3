package org.apache.spark.sql.tailrace.metrics

/** An executor's report to the driver, sent once a second: everything since its last report. */
final case class Report(
    executor: String,
    series: Array[RecordedSeries],
    reads: Array[ReadProgress],
    writes: Array[RowsWritten],
    badRecords: Array[BadRecordsSkipped],
    health: JvmReport)

/** Durations in compact form: bucket, count, bucket, count and so on. */
final case class RecordedSeries(key: SeriesKey, counts: Array[Long])

/** The health of an executor's JVM; `hiccups` are in the form of [[RecordedSeries]]. */
final case class JvmReport(
    systemCpuLoad: Double,
    processCpuLoad: Double,
    heapUsed: Long,
    heapMax: Long,
    pausesUs: Array[Long],
    hiccups: Array[Long])
