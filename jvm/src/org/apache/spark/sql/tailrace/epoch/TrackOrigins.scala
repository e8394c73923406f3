package org.apache.spark.sql.tailrace.epoch

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{RealTimeStreamScanExec, WriteToDataSourceV2Exec}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.tailrace.errors.{ErrorGuardExec, ErrorPolicy}
import org.apache.spark.sql.tailrace.metrics.{LatencyInProgressExec, LiveFigures, TimedWrite}
import org.apache.spark.sql.tailrace.operators.origin.{OriginFromSourceExec, OriginIntoShuffleExec, OriginOutOfShuffleExec}
import org.apache.spark.sql.tailrace.origin.{SourcePartitions, UsesOrigins}
import org.apache.spark.sql.tailrace.plan.{RehearsedPlan, Stages}
import org.apache.spark.sql.tailrace.sink.kafka.ExactlyOnceWrite

/**
 * In a real-time plan, lets each row's origin follow it: it is noted where the row is read, crosses each shuffle
 * behind the row's own bytes, and is known wherever the row is worked on. The query's schema and output stay as they are.
 *
 * Along the way the rows are timed, unless `spark.tailrace.latency.enabled` is false.
 */
object TrackOrigins extends Rule[SparkPlan] {
  val EnabledKey = "spark.tailrace.latency.enabled"

  /** Behind a shuffle only the origins of rows that are timed are known, unless somebody needs them all. */
  val EveryRowKey = "spark.tailrace.origin.everyRow"

  override def apply(plan: SparkPlan): SparkPlan = {
    val isDone = plan.exists(_.isInstanceOf[OriginFromSourceExec])
    val timed = !isSet(plan, EnabledKey, "false")
    // A user who keeps Spark's allowlist in force keeps our operators out: Spark would refuse the query for them.
    val mayBe = !plan.conf.getConf(SQLConf.STREAMING_REAL_TIME_MODE_ALLOWLIST_CHECK)
    val onError = ErrorPolicy.of(plan)
    val isOfUse = timed || onError.goesOn || usesOrigins(plan)
    if (Stages.reads(plan) && mayBe && isOfUse && !isDone && !RehearsedPlan.isOne(plan))
      new Follow(plan, timed, onError).result
    else plan
  }

  private def isSet(plan: SparkPlan, key: String, value: String): Boolean =
    plan.conf.getConfString(key, "").trim.equalsIgnoreCase(value)

  private def usesOrigins(plan: SparkPlan): Boolean = ExactlyOnceWrite.in(plan).isDefined || plan.exists {
    case operator: UsesOrigins => operator.usesOrigins
    case _ => false
  }

  private final class Follow(plan: SparkPlan, timed: Boolean, onError: ErrorPolicy) {
    private val stages = new Stages(plan)
    private val places = new SourcePartitions
    private val everyRow = isSet(plan, EveryRowKey, "true") || usesOrigins(plan) || onError.goesOn
    private val replayed = ExactlyOnceWrite.in(plan).flatMap(_.prepare(plan, onError))

    def result: SparkPlan = {
      if (timed) {
        LiveFigures.planned(plan, stages.shapes)
      }
      follow(plan, stages.last)
    }

    private def follow(node: SparkPlan, stage: Int): SparkPlan = node match {
      case scan: RealTimeStreamScanExec => OriginFromSourceExec(scan, places, stage, timed)
      case exchange: ShuffleExchangeExec if Stages.reads(exchange) => throughShuffle(exchange, stage)
      case write: WriteToDataSourceV2Exec if !timed && Stages.reads(write) =>
        write.withNewChildren(Seq(guarded(write.query, stage)))
      case write: WriteToDataSourceV2Exec if Stages.reads(write) =>
        val query = new LatencyInProgressExec(guarded(write.query, stage))
        val watched = write.copy(new TimedWrite(write.batchWrite, query.accumulator, stage), query = query)
        watched.copyTagsFrom(write)
        watched
      case _ =>
        node.withNewChildren(node.children.map(child => if (Stages.reads(child)) follow(child, stage) else child))
    }

    private def guarded(top: SparkPlan, stage: Int): SparkPlan = ErrorGuardExec(follow(top, stage), onError)

    private def throughShuffle(exchange: ShuffleExchangeExec, readBy: Int): SparkPlan = {
      val stage = stages.endingIn(exchange)
      val below = OriginIntoShuffleExec(guarded(exchange.child, stage), stage, everyRow, timed)
      val inOrderOf = replayed.filter(_ => readBy == stages.last)
      OriginOutOfShuffleExec(exchange.withNewChildren(Seq(below)), places, readBy, timed, inOrderOf)
    }
  }
}
