package org.apache.spark.sql.tailrace.epoch.drain

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.tailrace.ManualTime

class CatchUpProgressSuite extends munit.FunSuite with ManualTime {
  test("without records to wait for, only time counts") {
    assert(progress().isOver(0))
    assert(progress(target = Some(9), waiting = Some(9)).isOver(0), "they are before the first one")
  }

  test("records that an older run had read are waited for as long as some arrive") {
    val replay = progress(target = Some(12))
    replay.read(row(11), now = 90000)
    assert(!replay.isOver(99999))
    assert(replay.isOver(100001), "Kafka may have deleted the last one")
    replay.read(row(12), now = 100000)
    assert(replay.isOver(100000))
  }

  test("records that were waiting are waited for until their time is over") {
    val catchUp = progress(waiting = Some(12))
    assert(!catchUp.isOver(1001))
    catchUp.read(row(10), now = 55000)
    assert(!catchUp.isOver(60000))
    assert(catchUp.isOver(60001))
    catchUp.read(row(12), now = 55001)
    assert(catchUp.isOver(55001))
  }

  test("the end of a transaction, which is no record, is not waited for long") {
    val catchUp = progress(waiting = Some(12))
    assert(!catchUp.isOver(10000))
    catchUp.read(row(11), now = 10)
    assert(!catchUp.isOver(3010))
    assert(catchUp.isOver(3011))
  }

  private def progress(target: Option[Long] = None, waiting: Option[Long] = None) =
    new CatchUpProgress(target, waiting, nextOffset = 10, endsAt = 1000, waitsUntil = 60000, offsetColumn = 0)

  private def row(offset: Long): InternalRow = InternalRow(offset)
}
