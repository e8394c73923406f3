package org.apache.spark.sql.tailrace.metrics

/** What an executor tells the driver once a second. */
final case class Report(
    executor: String,
    series: Array[SeriesNews],
    reads: Array[ReadNews],
    writes: Array[WriteNews],
    leftOut: Array[LeftOutNews],
    health: HealthNews)

/** Durations that came since the last report: bucket, count, bucket, count and so on. */
final case class SeriesNews(key: SeriesKey, counts: Array[Long])

/**
 * How far a task is with its partition of a source, and how many rows it has read since the last report. Times are
 * microseconds since 1970, or zero.
 */
final case class ReadNews(
    run: String,
    epoch: Long,
    topic: String,
    partition: Int,
    beganAt: Long,
    endedAt: Long,
    offset: Long,
    rows: Long)

/** How many rows were handed to the sink since the last report. */
final case class WriteNews(run: String, rows: Long)

/** How many records could not be processed and were left out since the last report, and what the last of them said. */
final case class LeftOutNews(run: String, records: Long, error: String)

/** How the JVM fares: pauses of its collector, and by how much its threads are kept from running, since the last report. */
final case class HealthNews(
    systemCpuLoad: Double,
    processCpuLoad: Double,
    heapUsed: Long,
    heapMax: Long,
    pauses: Array[Long],
    hiccups: Array[Long])
