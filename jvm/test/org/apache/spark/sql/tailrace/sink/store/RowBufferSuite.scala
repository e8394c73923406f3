package org.apache.spark.sql.tailrace.sink.store

import java.util.concurrent.{Executors, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

class RowBufferSuite extends munit.FunSuite {
  private def buffer(maxRows: Int = 10, maxBytes: Long = 1000) = new RowBuffer[Int](maxRows, maxBytes, identity[Int])

  test("everything that waits is taken together, up to a limit") {
    val rows = buffer()
    (1 to 5).foreach(rows.put)
    assertEquals(rows.take(3), Seq(1, 2, 3))
    assertEquals(rows.take(3), Seq(4, 5))
  }

  test("a full buffer holds the task back, by rows and by bytes") {
    Seq(buffer(maxRows = 3), buffer(maxBytes = 30)).foreach { rows =>
      val put = new AtomicInteger
      val task = Executors.newSingleThreadExecutor()
      task.execute(() =>
        (1 to 6).foreach { _ =>
          rows.put(10)
          put.incrementAndGet()
        })
      while (put.get < 3) Thread.onSpinWait()
      // The fourth cannot get in before something is taken.
      assert(!task.awaitTermination(50, TimeUnit.MILLISECONDS))
      assertEquals(put.get, 3)
      assertEquals(rows.take(10).length, 3)
      rows.take(10)
      task.shutdown()
      assert(task.awaitTermination(10, TimeUnit.SECONDS))
      assertEquals(put.get, 6)
    }
  }

  test("a single row may be larger than the buffer") {
    val rows = buffer(maxBytes = 5)
    rows.put(100)
    assertEquals(rows.take(1), Seq(100))
  }

  test("a failure reaches the task, and nothing more is taken") {
    val rows = buffer()
    rows.put(1)
    rows.take(1)
    rows.fail(new IllegalStateException("gone"))
    intercept[IllegalStateException](rows.put(2))
    intercept[IllegalStateException](rows.awaitWritten())
    assertEquals(rows.take(1), Nil)
  }

  test("rows that are being written are waited for") {
    val rows = buffer()
    rows.put(1)
    rows.take(1)
    val waiting = Executors.newSingleThreadExecutor()
    waiting.execute(() => rows.awaitWritten())
    waiting.shutdown()
    assert(!waiting.awaitTermination(50, TimeUnit.MILLISECONDS))
    rows.written()
    assert(waiting.awaitTermination(10, TimeUnit.SECONDS))
  }
}
