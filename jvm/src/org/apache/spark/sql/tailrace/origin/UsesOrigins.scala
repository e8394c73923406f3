package org.apache.spark.sql.tailrace.origin

/** An operator that reads the origins of its rows. */
trait UsesOrigins {
  def usesOrigins: Boolean = true

  /** How the operator's results are recognized in a replay. */
  def rowIdentity: RowIdentity = RowIdentity.Origin
}

sealed trait RowIdentity

object RowIdentity {
  /** By the record that the row was made from. */
  case object Origin extends RowIdentity

  /** By the row's content: either of two records may complete a match of two streams. */
  case object Content extends RowIdentity

  /** Not at all. */
  case object Unknown extends RowIdentity
}
