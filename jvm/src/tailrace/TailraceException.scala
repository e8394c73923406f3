package tailrace

import org.apache.spark.SparkThrowable

/**
 * A mistake that the user can fix. The condition is one of the `TAILRACE_…` codes, so `getCondition()` works in
 * Python as it does for Spark's own errors.
 */
class TailraceException(condition: String, problem: String, fix: String)
    extends IllegalArgumentException(s"[$condition] $problem\nFix: $fix")
    with SparkThrowable {

  override def getCondition: String = condition

  // The stack would be Spark's, not the user's, and Spark prints it to the terminal.
  override def fillInStackTrace(): Throwable = this
}
