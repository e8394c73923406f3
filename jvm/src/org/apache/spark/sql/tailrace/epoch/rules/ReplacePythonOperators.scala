package org.apache.spark.sql.tailrace.epoch.rules

import org.apache.spark.api.python.PythonEvalType
import org.apache.spark.sql.catalyst.expressions.PythonUDF
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec
import org.apache.spark.sql.execution.python.{ArrowEvalPythonExec, BatchEvalPythonExec, MapInArrowExec, MapInPandasExec}
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite
import org.apache.spark.sql.tailrace.epoch.context.{EpochContext, EpochRule}
import org.apache.spark.sql.tailrace.errors.{ErrorGuardExec, ErrorPolicy}
import org.apache.spark.sql.tailrace.operators.python.{
  PythonForeachWrite, RealTimeEvalPythonExec, RealTimeForeachExec, RealTimeMapInBatchExec,
  RealTimeTransformWithStateExec
}
import org.apache.spark.sql.tailrace.plan.Stages

/** In a real-time plan, replaces Spark's Python operators with operators that pass each row on at once. */
object ReplacePythonOperators extends EpochRule {
  override def apply(plan: SparkPlan, epoch: EpochContext): SparkPlan = replaced(plan, epoch.onError)

  private def replaced(plan: SparkPlan, onError: ErrorPolicy): SparkPlan = plan.transformUp {
    case node if !Stages.reads(node) => node
    case eval: ArrowEvalPythonExec =>
      RealTimeEvalPythonExec(eval.udfs, eval.resultAttrs, guarded(eval.child, onError), eval.evalType, onError)
    case eval: BatchEvalPythonExec =>
      val rows = guarded(eval.child, onError)
      RealTimeEvalPythonExec(eval.udfs, eval.resultAttrs, rows, PythonEvalType.SQL_BATCHED_UDF, onError)
    case map: MapInPandasExec if !map.isBarrier && map.profile.isEmpty =>
      RealTimeMapInBatchExec(map.func.asInstanceOf[PythonUDF], map.output, guarded(map.child, onError))
    case map: MapInArrowExec if !map.isBarrier && map.profile.isEmpty =>
      RealTimeMapInBatchExec(map.func.asInstanceOf[PythonUDF], map.output, guarded(map.child, onError))
    case state: RealTimeTransformWithStateExec if !state.child.isInstanceOf[ErrorGuardExec] =>
      state.withNewChildren(Seq(guarded(state.child, onError), state.initialState))
    case write @ WriteToDataSourceV2Exec(batchWrite: MicroBatchWrite, _, query, _, _) =>
      batchWrite.writeSupport match {
        case foreach: PythonForeachWrite =>
          write.copy(query = RealTimeForeachExec(foreach.func, foreach.schema, guarded(query, onError)))
        case _ => write
      }
  }

  /** A Python operator reads its input in another thread, which has its own CurrentRow. */
  private def guarded(input: SparkPlan, onError: ErrorPolicy): SparkPlan = ErrorGuardExec(input, onError)
}
