package org.apache.spark.sql.tailrace.sink.redis

import org.apache.spark.sql.tailrace.sink.store.StoreOptions

/**
 * How the key of a row is made: `user:{user_id}` is a text and a column's value. Doubled braces are single ones.
 *
 * @param text  as the user wrote it
 * @param parts of the key: a text on the left, a column on the right
 */
private[redis] final case class KeyTemplate(text: String, parts: Seq[Either[String, String]]) {
  def columns: Seq[String] = parts.collect { case Right(column) => column }.distinct

  /** A key as it could be. */
  def example: String = parts.map(_.fold(identity, _ => "0")).mkString
}

private[redis] object KeyTemplate {
  private val Part = """\{\{|\}\}|\{([^{}]+)\}|[^{}]+""".r

  def parse(text: String): KeyTemplate = {
    val found = Part.findAllMatchIn(text).toSeq
    if (found.map(_.matched).mkString != text) {
      throw StoreOptions.bad(
        s"the option key is '$text', which has a brace without its other half",
        "name columns in braces, as in user:{user_id}, and write {{ and }} for braces in the key")
    }
    val parts = found.map { part =>
      (part.matched, Option(part.group(1))) match {
        case (_, Some(column)) => Right(column.trim)
        case ("{{", _) => Left("{")
        case ("}}", _) => Left("}")
        case (literal, _) => Left(literal)
      }
    }
    KeyTemplate(text, parts)
  }
}
