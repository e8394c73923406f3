package org.apache.spark.sql.tailrace.epoch

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory, Scan}
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, PartitionOffset, SupportsRealTimeMode}
import org.apache.spark.sql.execution.{LocalTableScanExec, ProjectExec, SparkPlan, UnionExec}
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, OriginTracking, ScanControl}
import org.apache.spark.sql.tailrace.epoch.drain.DrainableScanExec
import org.apache.spark.sql.tailrace.errors.ErrorPolicy
import org.apache.spark.sql.tailrace.metrics.EpochLatency
import org.apache.spark.sql.tailrace.operators.origin.{
  OriginFromSourceExec, OriginIntoShuffleExec, OriginOutOfShuffleExec
}
import org.apache.spark.sql.tailrace.origin.{SourcePartition, SourcePartitions}
import org.apache.spark.sql.types.{LongType, StructType}

/** In a session of its own: Spark's scan asks for one when it is made. */
class PlanEpochSuite extends munit.FunSuite {
  private var session: SparkSession = _

  override def beforeAll(): Unit =
    session = SparkSession.builder().master("local[1]").config("spark.ui.enabled", "false")
      .config("spark.log.level", "ERROR").getOrCreate()

  override def beforeEach(context: BeforeEach): Unit = SparkSession.setActiveSession(session)

  override def afterAll(): Unit = session.stop()

  private val EpochMs = 60000L
  private val column = AttributeReference("offset", LongType)()

  test("a plan that reads no stream in real time stays as it is") {
    val plan = ProjectExec(Seq(column), LocalTableScanExec(Seq(column), Nil, None))
    assert(PlanEpoch(plan) eq plan)
  }

  test("a plan that has been planned stays as it is") {
    Seq(live, live.copy(tracking = None), live.copy(scans = None)).foreach { context =>
      val planned = EpochRules.applyAll(shuffled(new TestStream), context)
      assert(PlanEpoch(planned) eq planned, context)
    }
  }

  test("a rehearsal needs no query, and adds nothing that only an execution needs") {
    val plan = shuffled(new StandInStream)
    assertEquals(PlanEpoch(plan), plan)
    assertEquals(CheckPlannedEpoch(plan), plan)
  }

  test("equal contexts give equal plans, and the plan they begin with stays as it is") {
    val plan = shuffled(new TestStream)
    val before = plan.treeString
    val context = live.copy(shortenToMs = Some(1000L))
    assertEquals(EpochRules.applyAll(plan, context), EpochRules.applyAll(plan, context))
    assertEquals(plan.treeString, before)
  }

  test("origins are tracked from the scan through the shuffle") {
    val planned = EpochRules.applyAll(shuffled(new TestStream), live)
    val nodes = planned.collect {
      case node: OriginOutOfShuffleExec => (node.nodeName, node.stage, node.timed)
      case node: OriginIntoShuffleExec => (node.nodeName, node.stage, node.timed)
      case node: OriginFromSourceExec => (node.nodeName, node.stage, node.timed)
    }
    assertEquals(nodes.map(_._2), Seq(1, 0, 0))
    assert(nodes.forall(_._3))
  }

  test("an epoch lasts as long as the trigger says") {
    assertEquals(scanIn(live).batchDurationMs, EpochMs)
  }

  test("a short epoch is short, but not longer than the trigger says") {
    assertEquals(scanIn(live.copy(shortenToMs = Some(1000L))).batchDurationMs, 1000L)
    assertEquals(scanIn(live.copy(shortenToMs = Some(2 * EpochMs))).batchDurationMs, EpochMs)
  }

  test("an epoch with rows to catch up with may last longer") {
    val behind = ScanControl("run", readAtLeast = Map(SourcePartition(0, "topic", 0) -> 41L), waiting = None)
    assert(scanIn(live.copy(scans = Some(behind))).batchDurationMs > EpochMs)
  }

  test("only the source that is behind lasts longer, though another one reads a topic of the same name") {
    for (behind <- 0 to 1) {
      val control = ScanControl("run", readAtLeast = Map(SourcePartition(behind, "topic", 0) -> 41L), waiting = None)
      val both = UnionExec(Seq.fill(2)(ProjectExec(Seq(column), scanOf(new TestStream))))
      val planned = EpochRules.applyAll(both, live.copy(scans = Some(control)))
      val scans = planned.collect { case scan: DrainableScanExec => scan }
      assertEquals(scans.map(_.batchDurationMs > EpochMs), Seq(behind == 0, behind == 1))
      val sources = planned.collect { case node: OriginFromSourceExec => node.source }
      assertEquals(sources, Seq(0, 1))
    }
  }

  test("without control over its scans, Spark's own stay") {
    val planned = EpochRules.applyAll(shuffled(new TestStream), live.copy(scans = None))
    assert(!planned.exists(_.isInstanceOf[DrainableScanExec]))
  }

  private def live: EpochContext = EpochContext(
    ErrorPolicy.Fail,
    addsOperators = true,
    tracking = Some(OriginTracking(new SourcePartitions, everyRow = true, Some(new EpochLatency), replayed = None)),
    shortenToMs = None,
    scans = Some(ScanControl("run", readAtLeast = Map.empty, waiting = None)),
    overlap = None,
    refusesUnsupported = true)

  private def shuffled(stream: MicroBatchStream): SparkPlan = {
    ProjectExec(Seq(column), ShuffleExchangeExec(HashPartitioning(Seq(column), 2), scanOf(stream)))
  }

  private def scanOf(stream: MicroBatchStream): SparkPlan =
    RealTimeStreamScanExec(Seq(column), TestScan, stream, TestOffset, EpochMs)

  private def scanIn(context: EpochContext): DrainableScanExec =
    EpochRules.applyAll(shuffled(new TestStream), context).collectFirst { case scan: DrainableScanExec => scan }.get
}

private object TestScan extends Scan {
  override def readSchema(): StructType = new StructType().add("offset", LongType)
}

private object TestOffset extends Offset {
  override def json(): String = "{}"
}

private class TestStream extends MicroBatchStream with SupportsRealTimeMode {
  override def latestOffset(): Offset = TestOffset
  override def planInputPartitions(start: Offset): Array[InputPartition] = Array.empty
  override def mergeOffsets(offsets: Array[PartitionOffset]): Offset = TestOffset
  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = Array.empty
  override def createReaderFactory(): PartitionReaderFactory = new PartitionReaderFactory {
    override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
      throw new UnsupportedOperationException("nothing is read in these tests")
  }
  override def initialOffset(): Offset = TestOffset
  override def deserializeOffset(json: String): Offset = TestOffset
  override def commit(end: Offset): Unit = ()
  override def stop(): Unit = ()
}

private class StandInStream extends TestStream with RehearsedSource
