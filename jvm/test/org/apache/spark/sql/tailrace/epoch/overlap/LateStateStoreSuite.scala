package org.apache.spark.sql.tailrace.epoch.overlap

import java.lang.reflect.{Method, Modifier, Proxy}

import scala.collection.mutable

import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOpStateStoreCheckpointInfo
import org.apache.spark.sql.execution.streaming.state.{
  ReadStateStore, StateStore, StateStoreId, SupportsReusableIterator
}
import org.apache.spark.sql.tailrace.operators.state.EpochGivenUp
import org.apache.spark.util.CollectionAccumulator

class LateStateStoreSuite extends munit.FunSuite {
  private val id = StateStoreId("/checkpoint", 3, 1)

  /** Notes what is called, and answers with zeros and nulls. */
  private final class Noted {
    val calls = mutable.Buffer.empty[String]
    var isCommitted = false

    val store: StateStore = Proxy.newProxyInstance(
      getClass.getClassLoader,
      Array(classOf[StateStore], classOf[SupportsReusableIterator]),
      (_: Object, method: Method, _: Array[Object]) => {
        calls += method.getName
        method.getReturnType match {
          case java.lang.Boolean.TYPE => Boolean.box(isCommitted)
          case java.lang.Long.TYPE => Long.box(0)
          case _ => null
        }
      }).asInstanceOf[StateStore]
  }

  private def unused = new LateStateStore(id, 7, () => fail("it is not used"))

  test("it is not opened before it is used") {
    assertEquals(unused.id, id)
    assertEquals(unused.version, 7L)
    assert(unused.toString.nonEmpty)
  }

  test("a task that ends without having used it aborts nothing, and does not wait for the epoch before") {
    val store = unused
    assert(!store.hasCommitted)
    store.abort()
  }

  test("it is opened once") {
    val (real, opened) = (new Noted, mutable.Buffer.empty[Int])
    val store = new LateStateStore(id, 7, () => { opened += 1; real.store })
    store.get(null, "default")
    store.put(null, null, "default")
    store.commit()
    assertEquals(opened.toSeq, Seq(1))
    assertEquals(real.calls.toSeq, Seq("get", "put", "commit"))
  }

  test("variables are defined without opening it, and before anything else is done with it") {
    val (real, opened) = (new Noted, mutable.Buffer.empty[Int])
    val store = new LateStateStore(id, 7, () => { opened += 1; real.store })
    def define(): Unit = store.createColFamilyIfAbsent("one", null, null, null, false, false)
    define()
    define()
    assertEquals(opened.toSeq, Seq.empty)
    store.get(null, "one")
    define()
    val defined = "createColFamilyIfAbsent"
    assertEquals(real.calls.toSeq, Seq(defined, defined, "get", defined))
  }

  test("it tells while it is being opened, also if it is not opened in the end") {
    lazy val store: LateStateStore = new LateStateStore(
      id,
      7,
      () => {
        assert(store.isBeingOpened)
        throw new EpochGivenUp("given up")
      })
    assert(!store.isBeingOpened)
    intercept[EpochGivenUp](store.open())
    assert(!store.isBeingOpened)
  }

  test("what a task has not committed is aborted") {
    val real = new Noted
    val store = new LateStateStore(id, 7, () => real.store)
    store.get(null, "default")
    assert(!store.hasCommitted)
    store.abort()
    assertEquals(real.calls.toSeq, Seq("get", "hasCommitted", "abort"))
    real.isCommitted = true
    assert(store.hasCommitted)
  }

  test("every operation on state reaches the real store, also those with a default") {
    val own = Set("id", "version", "hasCommitted", "abort", "release")
    // The static ones are those of the companion.
    val operations = (classOf[StateStore].getMethods ++ classOf[ReadStateStore].getMethods ++
      classOf[SupportsReusableIterator].getMethods)
      .filterNot(method => own(method.getName) || method.getName.contains("$"))
      .filterNot(method => method.isBridge || Modifier.isStatic(method.getModifiers))
    assert(operations.length > 20)
    operations.foreach { operation =>
      val real = new Noted
      val arguments = operation.getParameterTypes.map {
        case java.lang.Boolean.TYPE => Boolean.box(false)
        case _ => null
      }
      val store = new LateStateStore(id, 7, () => real.store)
      operation.invoke(store, arguments: _*)
      // A definition waits until then.
      store.open()
      assertEquals(real.calls.toSeq, Seq(operation.getName))
    }
  }

  test("the checkpoints that a task has committed are those of its own partition, one for each store") {
    val checkpoints = new CollectionAccumulator[StatefulOpStateStoreCheckpointInfo]
    intercept[IllegalStateException](CommittedCheckpoint.of(checkpoints, 1))
    checkpoints.add(StatefulOpStateStoreCheckpointInfo(0, 8, Some(Array("a")), None))
    checkpoints.add(StatefulOpStateStoreCheckpointInfo(1, 8, Some(Array("b", "b2")), None))
    assertEquals(CommittedCheckpoint.of(checkpoints, 1).toSeq, Seq("b", "b2"))
    checkpoints.add(StatefulOpStateStoreCheckpointInfo(1, 8, Some(Array("c")), None))
    intercept[IllegalStateException](CommittedCheckpoint.of(checkpoints, 1))
  }
}
