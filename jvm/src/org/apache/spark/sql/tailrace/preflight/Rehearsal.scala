package org.apache.spark.sql.tailrace.preflight

import java.util.UUID

import scala.util.Try

import org.apache.spark.sql.catalyst.analysis.ResolveDeduplicate
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.{
  Deduplicate, DeduplicateWithinWatermark, LogicalPlan, TransformWithStateInPySpark
}
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{Table, TableCapability}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{StreamingDataSourceV2Relation, StreamingDataSourceV2ScanRelation}
import org.apache.spark.sql.execution.streaming.checkpointing.{OffsetSeqMetadata, OffsetSeqMetadataBase}
import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, StreamingRelation, WatermarkPropagator}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.Utils
import org.apache.spark.sql.tailrace.conf.TailraceConf
import org.apache.spark.sql.tailrace.plan.{OutputModes, SessionWindows}

/**
 * Plans the first epoch of a real-time query as Spark itself would, without a checkpoint, a sink or a broker. Stand-ins
 * with the same number of partitions replace the sources.
 *
 * @param recorded settings from the query's checkpoint, such as the number of shuffle partitions
 */
private[preflight] final class Rehearsal(
    session: SparkSession,
    query: LogicalPlan,
    epochMs: Long,
    sources: Map[LogicalPlan, Source],
    recorded: Option[OffsetSeqMetadataBase]) {
  import Rehearsal._

  private val rehearsing = {
    val own = session.cloneSession()
    Seq(
      // As Spark sets them for every streaming query, and for every one in Real-Time Mode.
      SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false",
      SQLConf.CBO_ENABLED.key -> "false",
      SQLConf.SORT_BEFORE_REPARTITION.key -> "false",
      SQLConf.STATEFUL_SHUFFLE_PARTITIONS_INTERNAL.key -> session.sessionState.conf.numShufflePartitions.toString,
      // Code generation would only hide the operators.
      SQLConf.WHOLESTAGE_CODEGEN_ENABLED.key -> "false").foreach { case (key, value) => own.conf.set(key, value) }
    recorded.foreach(OffsetSeqMetadata.setSessionConf(_, own.sessionState.conf))
    own
  }

  // The state's folder is named but never created: only running tasks look for state.
  lazy val planned: Try[SparkPlan] =
    plan(s"${Utils.getLocalDir(session.sparkContext.conf)}/tailrace-rehearsal", epoch = 0, comparesState = false)

  /**
   * Why the query cannot continue with the state of a checkpoint, as Spark would find out in its first epoch. A Python
   * processor would have to run to describe its state; Spark does that itself before it reads the first row.
   */
  def stateObstacle(checkpoint: Checkpoint): Option[Throwable] =
    if (query.exists(_.isInstanceOf[TransformWithStateInPySpark])) None else obstacleIn(checkpoint)

  private def obstacleIn(checkpoint: Checkpoint): Option[Throwable] = {
    val copy = Utils.createTempDir(namePrefix = "tailrace-check")
    try {
      checkpoint.copyStateSchemas(copy)
      plan(copy.toURI.toString, checkpoint.nextEpoch, comparesState = true).failed.toOption
    } finally Utils.deleteRecursively(copy)
  }

  private def plan(checkpoint: String, epoch: Long, comparesState: Boolean): Try[SparkPlan] =
    Try(rehearsing.withActive {
      TailraceConf.check(rehearsing.sessionState.conf.getAllConfs)
      val settings = recorded.getOrElse(OffsetSeqMetadata(0L, System.currentTimeMillis(), rehearsing.conf))
      new IncrementalExecution(
        rehearsing,
        withStandIns,
        OutputModes.plannable(query),
        s"$checkpoint/state",
        UUID.randomUUID(),
        UUID.randomUUID(),
        currentBatchId = epoch,
        prevOffsetSeqMetadata = None,
        offsetSeqMetadata = settings,
        watermarkPropagator = WatermarkPropagator.noop(),
        // In the first epoch of a run, Spark compares the state's schema, and writes it if it is new.
        isFirstBatch = comparesState,
        isRealTimeMode = true).executedPlan
    })

  private def withStandIns: LogicalPlan = SessionWindows.admitted(withKeys).transform {
    case relation @ (_: StreamingRelationV2 | _: StreamingRelation) => standIn(relation, sources(relation))
  }

  // Spark leaves the keys of a deduplication open until the query starts.
  private def withKeys: LogicalPlan = {
    val conf = rehearsing.sessionState.conf
    val inOrder = conf.getConf(SQLConf.DROP_DUPLICATES_DETERMINISTIC_KEY_ORDER)
    query.transformUp {
      case node @ Deduplicate(_, child, Some(spec)) =>
        node.copy(keys = ResolveDeduplicate.computeKeys(child, spec, inOrder, conf.resolver))
      case node @ DeduplicateWithinWatermark(_, child, Some(spec)) =>
        node.copy(keys = ResolveDeduplicate.computeKeys(child, spec, inOrder, conf.resolver))
    }
  }

  private def standIn(relation: LogicalPlan, source: Source): LogicalPlan = {
    val output = relation.output.collect { case column: AttributeReference => column }
    val table = StandInTable(source.label, fromAttributes(output))
    val stream = RehearsedStream(source.label, source.number, source.partitions.getOrElse(UnknownPartitions))
    StreamingDataSourceV2ScanRelation(
      StreamingDataSourceV2Relation(table, output, None, None, CaseInsensitiveStringMap.empty, "", Some(epochMs)),
      RehearsedScan(table.schema, source.label),
      output,
      stream,
      startOffset = Some(RehearsedOffset))
  }
}

object Rehearsal {
  private val UnknownPartitions = 2
}

private final case class StandInTable(override val name: String, override val schema: StructType) extends Table {
  override def capabilities: java.util.Set[TableCapability] = java.util.Set.of(TableCapability.MICRO_BATCH_READ)
}
