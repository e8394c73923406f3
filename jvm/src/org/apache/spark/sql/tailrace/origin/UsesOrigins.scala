package org.apache.spark.sql.tailrace.origin

/** An operator that reads the origins of its rows. */
trait UsesOrigins {
  def usesOrigins: Boolean = true

  /** How a result is recognised when it is computed again. */
  def rowIdentity: RowIdentity = RowIdentity.Origin
}

sealed trait RowIdentity

object RowIdentity {
  /** By the record that the row was made of. */
  case object Origin extends RowIdentity

  /** By what the row says: either of two records may complete a match of two streams. */
  case object Content extends RowIdentity

  /** Not at all. */
  case object Unknown extends RowIdentity
}
