package org.apache.spark.sql.tailrace.operators.input

import java.util.concurrent.{ArrayBlockingQueue, CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.{TaskContext, TaskContextImpl, TaskKilledException}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.tailrace.origin.CurrentRow

class ThreadFedInputSuite extends munit.FunSuite {
  private val LongMs = 60000L

  private val task = FunFixture[TaskContextImpl](_ => TaskContext.empty(), _.markTaskCompleted(None))

  private def rows(ids: Iterator[Int], current: CurrentRow = new CurrentRow): OriginTrackedRows =
    new OriginTrackedRows(
      ids.map { id =>
        current.offset = id
        InternalRow(id)
      },
      current)

  private def ids(input: ThreadFedInput): Seq[Int] =
    Iterator.continually(input.next()).takeWhile(_ != null).map(_.row.getInt(0)).toSeq

  /** Blocks until the thread is interrupted. */
  private def endless(entered: CountDownLatch, left: AtomicBoolean): Iterator[Int] = new Iterator[Int] {
    override def hasNext: Boolean = {
      entered.countDown()
      try new CountDownLatch(1).await()
      finally left.set(true)
      true
    }
    override def next(): Int = 0
  }

  task.test("rows keep their order and their origins, far beyond the queue's capacity") { context =>
    val input = new ThreadFedInput(Seq(rows((1 to 5000).iterator)), "test", context)
    val taken = Iterator.continually(input.next()).takeWhile(_ != null).toSeq
    assertEquals(taken.map(_.row.getInt(0)), 1 to 5000: Seq[Int])
    assertEquals(taken.map(_.origin.offset.toInt), 1 to 5000: Seq[Int])
    assert(input.hasEnded)
  }

  task.test("each input keeps its own order and its index") { context =>
    val input = new ThreadFedInput(Seq(rows((1 to 2000).iterator), rows((1 to 3000).iterator)), "test", context)
    val taken = Iterator.continually(input.next()).takeWhile(_ != null).toSeq.groupMap(_.input)(_.row.getInt(0))
    assertEquals(taken(0), 1 to 2000: Seq[Int])
    assertEquals(taken(1), 1 to 3000: Seq[Int])
  }

  task.test("it ends when the last input has ended") { context =>
    val more = new ArrayBlockingQueue[Int](10)
    val second = Iterator.continually(more.take()).takeWhile(_ > 0)
    val input = new ThreadFedInput(Seq(rows(Iterator(7)), rows(second)), "test", context)
    assertEquals(input.next().row.getInt(0), 7)
    assertEquals(input.nextWithin(10), null)
    assert(!input.hasEnded)
    more.put(8)
    more.put(0)
    assertEquals(ids(input), Seq(8))
    assert(input.hasEnded)
  }

  task.test("a failure comes after the rows before it, and again at each further call") { context =>
    val reason = new IllegalStateException("the source failed")
    val failing = Iterator(1, 2) ++ Iterator.continually(throw reason)
    val input = new ThreadFedInput(Seq(rows(failing)), "test", context)
    assertEquals(Seq.fill(2)(input.next().row.getInt(0)), Seq(1, 2))
    assert(intercept[IllegalStateException](input.next()) eq reason)
    assert(intercept[IllegalStateException](input.poll(0)) eq reason)
    assert(input.hasFailedWith(reason))
    assert(!input.hasFailedWith(new IllegalStateException("the source failed")))
    assert(!input.hasEnded)
  }

  test("the end of the task interrupts its readers and waits for them, even in an interrupted thread") {
    val (context, entered, left) = (TaskContext.empty(), new CountDownLatch(1), new AtomicBoolean)
    new ThreadFedInput(Seq(rows(endless(entered, left))), "test", context)
    assert(entered.await(LongMs, TimeUnit.MILLISECONDS))
    Thread.currentThread().interrupt()
    context.markTaskCompleted(None)
    assert(Thread.interrupted(), "the interruption was swallowed")
    assert(left.get())
  }

  test("the end of the task frees a reader that waits for room") {
    // One row is taken and 1024 fill the queue, so the reader waits with the next one.
    val (context, read) = (TaskContext.empty(), new CountDownLatch(1026))
    val source = Iterator.from(1).tapEach(_ => read.countDown())
    val input = new ThreadFedInput(Seq(rows(source)), "test", context)
    assertEquals(input.next().row.getInt(0), 1)
    assert(read.await(LongMs, TimeUnit.MILLISECONDS))
    context.markTaskCompleted(None)
    assertEquals(input.poll(0).row.getInt(0), 2)
  }

  task.test("a killed task learns of it while it waits, but a thread that polls does not") { context =>
    val more = new ArrayBlockingQueue[Int](1)
    val input = new ThreadFedInput(Seq(rows(Iterator.continually(more.take()))), "test", context)
    context.markInterrupted("the query was stopped")
    assertEquals(input.poll(1), null)
    intercept[TaskKilledException](input.nextWithin(1))
  }
}
