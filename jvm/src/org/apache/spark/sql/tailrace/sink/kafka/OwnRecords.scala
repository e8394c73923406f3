package org.apache.spark.sql.tailrace.sink.kafka

import scala.collection.mutable

import org.apache.kafka.clients.consumer.ConsumerRecord

import org.apache.spark.sql.tailrace.origin.RowId
import org.apache.spark.sql.tailrace.sink.dedup.{OutputPosition, WrittenRow}

/**
 * Recognizes the records of a query among all that are in its topics. Others may write there too, by mistake or to do
 * harm: if a record of theirs were taken for a row of the query, the row itself would never be written.
 *
 * For one read-back, by one thread.
 *
 * @param byContent true if rows are recognized by their content
 */
final class OwnRecords(query: String, secret: SinkSecret, byContent: Boolean) {
  import OwnRecords._

  private val mac = new RecordMac(secret)
  private val digest = new ContentDigest
  private val counted = mutable.HashSet.empty[String]

  /** None if another producer wrote the record. */
  def read(record: ConsumerRecord[Array[Byte], Array[Byte]]): Option[WrittenRow] = {
    val all = record.headers().toArray()
    val macIndex = RowHeaders.macIndex(all)
    // Nothing behind the code is authentic; tracing tools add their own headers there.
    val covered = all.take(macIndex)
    for {
      code <- Option.when(macIndex >= 0)(all(macIndex)).flatMap(RowHeaders.readMac)
      (source, id, mark) <- RowHeaders.read(covered)
      if mark.query == query
      partition <- Seq[Integer](null, record.partition()).find(named =>
        mac.isOf(code, new OutputRecord(record.topic(), record.key(), record.value(), named, covered)))
    } yield {
      val keyHash = RecordHashes.ofKey(record.topic(), record.key())
      // A copy of a record has the same code. Equal rows have not, because each has its own sequence number.
      val isCopy = (byContent || source.isMadeByTime) && !counted.add(code)
      val contentId = Option.when(byContent && !isCopy) {
        val headers = covered.take(RowHeaders.identityIndex(covered))
        digest.of(new OutputRecord(record.topic(), record.key(), record.value(), partition, headers))
      }
      val at = OutputPosition(record.topic(), record.partition(), record.offset())
      // What is recognized by its content must not be counted a second time.
      val ownId = if (source.isMadeByTime && isCopy) RowId.madeByTime(NoEpoch) else id
      WrittenRow(source, ownId, mark, keyHash, RecordHashes.ofContent(keyHash, record.value()), contentId, at)
    }
  }
}

private object OwnRecords {
  private val NoEpoch = -1L
}
