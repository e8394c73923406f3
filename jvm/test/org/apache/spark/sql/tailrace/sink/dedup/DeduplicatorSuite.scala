package org.apache.spark.sql.tailrace.sink.dedup

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.dedup.Decision.{Correct, Drop, Write}
import org.apache.spark.sql.tailrace.sink.dedup.DeduplicationStrategy.StatefulByOrigin

class DeduplicatorSuite extends munit.FunSuite {
  import DeduplicatorSuite._

  private val StatelessByOrigin = DeduplicationStrategy.StatelessByOrigin(isOrdered = true)

  test("without a read-back every row is written") {
    val rows = Seq(row(0, "k", "a"), row(0, "k", "a", ordinal = 1), row(1, "k", "a"))
    assertEquals(decisions(StatelessByOrigin, Nil)(rows: _*), rows.map(_ -> Write))
    assertEquals(decisions(StatefulByOrigin, Nil)(rows: _*), rows.map(_ -> Write))
  }

  test("stateless: rows in the output are dropped, and the rest is written") {
    val (first, second, third) = (row(0, "k", "a"), row(1, "k", "b"), row(2, "k", "c"))
    assertEquals(
      decisions(StatelessByOrigin, Seq(first, second))(first, second, third),
      Seq(first -> Drop, second -> Drop, third -> Write))
  }

  test("stateless: a row is dropped once for each time that it is in the output") {
    val (first, second) = (row(0, "k", "a"), row(0, "k", "a", ordinal = 1))
    assertEquals(decisions(StatelessByOrigin, Seq(first))(first, second), Seq(first -> Drop, second -> Write))
    assertEquals(decisions(StatelessByOrigin, Seq(first, second))(first, second), Seq(first -> Drop, second -> Drop))
  }

  test("stateless: the rows of a record may be replayed in another order") {
    val written = Seq(row(0, "k", "a"), row(0, "k", "b", ordinal = 1))
    val (b, a) = (row(0, "k", "b"), row(0, "k", "a", ordinal = 1))
    assertEquals(decisions(StatelessByOrigin, written)(b, a), Seq(b -> Drop, a -> Drop))
  }

  test("stateless: a row with new content is held back until the record's other rows are known") {
    // The output has one of the two rows, and it is not the first.
    val (other, same) = (row(0, "k", "new"), row(0, "k", "a", ordinal = 1))
    val deduplicator = of(StatelessByOrigin, Seq(row(0, "k", "a", ordinal = 1)))
    assertEquals(deduplicator.offer(other), Nil)
    assertEquals(pairs(deduplicator.offer(same)), Seq(other -> Write, same -> Drop))
    assertEquals(deduplicator.finish(), Nil)
  }

  test("stateless: a row whose content changes with each attempt is dropped if the output has another version of it") {
    val (now, next) = (row(0, "k", "12:01"), row(1, "k", "12:02"))
    val deduplicator = of(StatelessByOrigin, Seq(row(0, "k", "12:00")))
    assertEquals(deduplicator.offer(now), Nil)
    assertEquals(pairs(deduplicator.offer(next)), Seq(now -> Drop, next -> Write))
  }

  test("stateless: held back rows are decided at the end of the task") {
    val now = row(0, "k", "12:01")
    val deduplicator = of(StatelessByOrigin, Seq(row(0, "k", "12:00")))
    assertEquals(deduplicator.offer(now), Nil)
    assertEquals(pairs(deduplicator.finish()), Seq(now -> Drop))
    assertEquals(deduplicator.finish(), Nil)
  }

  test("stateless: each row of a record keeps its ordinal, whatever the order of the next replay") {
    val deduplicator = of(StatelessByOrigin, Seq(row(0, "k", "b")))
    val decided = Seq(row(0, "k", "a"), row(0, "k", "b", ordinal = 1)).flatMap(deduplicator.offer)
    assertEquals(decided.map(one => (one.candidate.value, one.ordinal)), Seq(("a", 1), ("b", 0)))
  }

  test("rows of other partitions, sources and paths are different rows") {
    val written = row(0, "k", "a")
    val others = Seq(
      written.copy(source = SourcePartition(0, "in", 1)),
      written.copy(source = SourcePartition(1, "in", 0)),
      written.copy(row = written.row.copy(path = 7)))
    for (strategy <- Seq(StatelessByOrigin, StatefulByOrigin)) {
      assertEquals(decisions(strategy, Seq(written))(others: _*), others.map(_ -> Write))
    }
  }

  test("stateful: equal rows are dropped, and a key is written from the row on that differs") {
    val written = Seq(row(0, "k", "1"), row(1, "k", "2"), row(2, "k", "3"), row(3, "other", "1"))
    val (first, changed, last, other) = (row(0, "k", "1"), row(1, "k", "20"), row(2, "k", "3"), row(3, "other", "1"))
    assertEquals(
      decisions(StatefulByOrigin, written)(first, changed, last, other),
      Seq(first -> Drop, changed -> Correct, last -> Correct, other -> Drop))
  }

  test("stateful: rows of a record are told apart by their content, and their order counts") {
    val written = Seq(row(0, "k", "a"), row(0, "k", "b", ordinal = 1))
    val (b, a) = (row(0, "k", "b"), row(0, "k", "a", ordinal = 1))
    assertEquals(decisions(StatefulByOrigin, written)(b, a), Seq(b -> Drop, a -> Correct))
  }

  test("stateful: a row is dropped if time made it before, and so are the other rows of its record") {
    val (timer, back) = (madeByTime("k", "silent"), row(1, "k", "back"))
    val (silent, later) = (row(1, "k", "silent"), row(1, "k", "back", ordinal = 1))
    val found = decisions(StatefulByOrigin, Seq(timer, back))(silent, later)
    assertEquals(found, Seq(silent -> Drop, later -> Drop))
    val withoutKey = Seq(timer, back).map(_.copy(hasKey = false))
    val asRows = Seq(silent, later).map(_.copy(hasKey = false))
    assertEquals(decisions(StatefulByOrigin, withoutKey)(asRows: _*), asRows.map(_ -> Drop))
    assertEquals(decisions(StatefulByOrigin, Seq(timer))(silent), Seq(silent -> Drop))
    val ofAnotherEpoch = madeByTime("k", "silent", epoch = 4)
    assertEquals(decisions(StatefulByOrigin, Seq(ofAnotherEpoch))(silent), Seq(silent -> Write))
    assertEquals(decisions(StatefulByOrigin, Seq(silent))(timer), Seq(timer -> Write))
  }

  test("the last version of a row that was corrected counts") {
    val (old, corrected) = (row(0, "k", "1"), row(0, "k", "2"))
    assertEquals(decisions(StatefulByOrigin, Seq(old, corrected))(row(0, "k", "2")), Seq(row(0, "k", "2") -> Drop))
  }

  test("stateful: a new row made by time is written, and so is everything after it") {
    val (first, second) = (row(0, "k", "1"), row(1, "k", "2"))
    val timer = madeByTime("k", "silent")
    assertEquals(
      decisions(StatefulByOrigin, Seq(first, second))(first, timer, second),
      Seq(first -> Drop, timer -> Write, second -> Correct))
  }

  test("stateful: rows made by time are dropped as often as they are in the output") {
    val (first, timer, second) = (row(0, "k", "1"), madeByTime("k", "silent"), row(1, "k", "2"))
    val written = Seq(first, timer, timer, second)
    assertEquals(decisions(StatefulByOrigin, written)(written: _*), written.map(_ -> Drop))
    assertEquals(
      decisions(StatefulByOrigin, written)(first, timer, timer, timer, second),
      Seq(first -> Drop, timer -> Drop, timer -> Drop, timer -> Write, second -> Correct))
    val withoutKey = timer.copy(hasKey = false)
    assertEquals(
      decisions(StatefulByOrigin, Seq(withoutKey, withoutKey))(Seq.fill(3)(withoutKey): _*).map(_._2),
      Seq[Decision](Drop, Drop, Write))
  }

  test("stateful: a row made by time is written if a record follows in the output that is not expected again") {
    val (timer, back) = (madeByTime("k", "silent"), row(1, "k", "back"))
    val late = timer.copy(expectsOthers = false)
    assertEquals(decisions(StatefulByOrigin, Seq(timer, back))(late), Seq(late -> Write))
    assertEquals(decisions(StatefulByOrigin, Seq(timer, back, timer))(late), Seq(late -> Drop))
    val another = madeByTime("k", "still silent").copy(expectsOthers = false)
    assertEquals(decisions(StatefulByOrigin, Seq(late, another))(late, another), Seq(late -> Drop, another -> Drop))
    assertEquals(decisions(StatefulByOrigin, Seq(timer, back))(timer, back), Seq(timer -> Drop, back -> Drop))
  }

  test("stateful: a row that time made in another epoch is another row") {
    val (before, now) = (madeByTime("k", "silent"), madeByTime("k", "silent", epoch = 6))
    assertEquals(decisions(StatefulByOrigin, Seq(before))(now), Seq(now -> Write))
    val withoutKey = now.copy(hasKey = false)
    assertEquals(
      decisions(StatefulByOrigin, Seq(before.copy(hasKey = false)))(withoutKey),
      Seq(withoutKey -> Write))
  }

  test("stateful: nothing is written again if the last row of a key is the last one in the output") {
    val written = Seq(row(0, "k", "1"), row(0, "k", "2"), row(0, "k", "1"))
    assertEquals(decisions(StatefulByOrigin, written)(row(0, "k", "1")), Seq(row(0, "k", "1") -> Drop))
  }

  test("stateful: the last row of a key is written again at the end if the output holds another one after it") {
    // The first run wrote 1 2 3, the second one was killed after it had corrected the second row.
    val written = Seq(row(0, "k", "1"), row(1, "k", "2"), row(2, "k", "3"), row(1, "k", "20"))
    val rows = written.take(3)
    assertEquals(decisions(StatefulByOrigin, written)(rows: _*), rows.map(_ -> Drop) :+ (rows.last -> Correct))
  }

  test("stateful: rows without a key are compared one by one") {
    def withoutKey(offset: Long, value: String) = row(offset, "", value).copy(hasKey = false)
    val (first, second, third) = (withoutKey(0, "1"), withoutKey(1, "2"), withoutKey(2, "3"))
    val changed = second.copy(value = "20")
    assertEquals(
      decisions(StatefulByOrigin, Seq(first, second, third))(third, changed, first),
      Seq(third -> Drop, changed -> Correct, first -> Drop))
  }

  test("a row that was compacted away is not written again, because it would hide the one that replaced it") {
    val replacement = row(5, "k", "b").copy(isCompacted = true)
    val gone = row(0, "k", "a").copy(isCompacted = true)
    for (strategy <- Seq(StatelessByOrigin, StatefulByOrigin)) {
      assertEquals(decisions(strategy, Seq(replacement))(gone, replacement), Seq(gone -> Drop, replacement -> Drop))
    }
  }

  test("stateless: a row that was compacted away does not hide one of another partition") {
    val ofOther = row(5, "k", "b").copy(source = SourcePartition(0, "in", 1), isCompacted = true)
    val (gone, later) = (row(0, "k", "a").copy(isCompacted = true), row(1, "other", "a").copy(isCompacted = true))
    assertEquals(decisions(StatelessByOrigin, Seq(ofOther, later))(gone, later), Seq(gone -> Drop, later -> Drop))
  }

  test("a new row of a compacted topic is written") {
    val (old, next) = (row(0, "k", "a").copy(isCompacted = true), row(1, "k", "b").copy(isCompacted = true))
    for (strategy <- Seq(StatelessByOrigin, StatefulByOrigin)) {
      assertEquals(decisions(strategy, Seq(old))(old, next), Seq(old -> Drop, next -> Write))
    }
  }

  test("a missing row is written, and so is what would be older than it") {
    val (missing, later) = (row(0, "k", "a"), row(5, "k", "b"))
    for (strategy <- Seq(StatelessByOrigin, StatefulByOrigin)) {
      assertEquals(decisions(strategy, Seq(later))(missing, later), Seq(missing -> Write, later -> Correct))
    }
  }

  test("stateless: after two shuffles a missing row corrects nothing, because the order was never known") {
    val (missing, later) = (row(0, "k", "a"), row(5, "k", "b"))
    val unordered = DeduplicationStrategy.StatelessByOrigin(isOrdered = false)
    assertEquals(decisions(unordered, Seq(later))(missing, later), Seq(missing -> Write, later -> Drop))
  }

  test("stateless: rows of another query are dropped only if they are equal") {
    val written = Seq(row(0, "k", "a"), row(1, "k", "b"))
    val (changed, same) = (row(0, "k", "new"), row(1, "k", "b"))
    val deduplicator =
      Deduplicator.byOrigin[TestRow](StatelessByOrigin, readBack(written), task = 0, epoch = 5, isSameQuery = false)
    val decided = Seq(changed, same).flatMap(deduplicator.offer) ++ deduplicator.finish()
    assertEquals(decided.map(_.decision), Seq[Decision](Write, Correct))
  }

  test("by content: equal matches are dropped as often as they are in the output, whatever completed them") {
    val (first, again, other) = (row(0, "k", "a"), row(9, "k", "a"), row(1, "k", "b"))
    val deduplicator = new DeduplicateByContent[TestRow](Seq(first.contentId, first.contentId, id("left")))
    val decided = Seq(again, other, first, first).flatMap(deduplicator.offer)
    assertEquals(decided.map(_.decision), Seq[Decision](Drop, Write, Drop, Write))
    assertEquals(deduplicator.notReplayed, Seq(id("left")))
  }

  test("by content: what has not been replayed keeps its count") {
    val deduplicator = new DeduplicateByContent[TestRow](Seq(id("a"), id("a"), id("a")))
    deduplicator.offer(row(0, "k", "a"))
    assertEquals(deduplicator.notReplayed, Seq(id("a"), id("a")))
  }

  test("decisions are counted") {
    val deduplicator = of(StatefulByOrigin, Seq(row(0, "a", "1"), row(1, "b", "1"), row(2, "c", "1")))
    Seq(row(0, "a", "1"), row(1, "b", "2"), row(2, "c", "1"), row(3, "d", "1")).foreach(deduplicator.offer)
    assertEquals((deduplicator.dropped, deduplicator.corrected), (2L, 1L))
  }

  private def decisions(strategy: DeduplicationStrategy, written: Seq[TestRow])(
      rows: TestRow*): Seq[(TestRow, Decision)] = {
    val deduplicator = of(strategy, written)
    pairs(rows.flatMap(deduplicator.offer) ++ deduplicator.finish())
  }

  private def pairs(decided: Seq[Decided[TestRow]]): Seq[(TestRow, Decision)] =
    decided.map(one => one.candidate -> one.decision)

  private def of(strategy: DeduplicationStrategy, written: Seq[TestRow]): Deduplicator[TestRow] =
    Deduplicator.byOrigin(strategy, readBack(written), task = 0, epoch = 5, isSameQuery = true)
}

object DeduplicatorSuite {

  /** Keys and values are texts, and stand for their own hashes. */
  final case class TestRow(
      source: SourcePartition,
      row: RowId,
      key: String,
      value: String,
      isCompacted: Boolean = false,
      expectsOthers: Boolean = true,
      hasKey: Boolean = true)
      extends Candidate {
    override def keyHash: Long = key.hashCode
    override def contentHash: Long = s"$key=$value".hashCode
    override def contentId: ContentId = id(value)
  }

  def id(text: String): ContentId = ContentId(text.hashCode, text.length)

  def row(offset: Long, key: String, value: String, ordinal: Int = 0): TestRow =
    TestRow(SourcePartition(0, "in", 0), RowId(offset, 0, ordinal), key, value)

  def madeByTime(key: String, value: String, epoch: Long = 5): TestRow =
    TestRow(SourcePartition.madeByTime(0), RowId.madeByTime(epoch), key, value)

  def readBack(rows: Seq[TestRow]): WrittenRows = new WrittenRows(rows.zipWithIndex.map { case (row, sequence) =>
    val mark = WriterMark("query", 1, 0, sequence)
    WrittenRow(row.source, row.row, mark, row.keyHash, row.contentHash, None, OutputPosition("out", 0, sequence))
  })
}
