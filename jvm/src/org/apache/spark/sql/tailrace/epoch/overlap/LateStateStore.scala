package org.apache.spark.sql.tailrace.epoch.overlap

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.tailrace.operators.state.OpensLate
import org.apache.spark.sql.types.StructType

/**
 * A state store that is opened when it is first used. A stateful operator can be built with it while the epoch before
 * still uses the real one. A processor that only defines its variables does not wait for it.
 *
 * It is opened by the thread that uses it first, which need not be the one that commits it.
 *
 * @param openReal waits until the epoch before has handed the state over
 */
private[overlap] final class LateStateStore(
    override val id: StateStoreId,
    override val version: Long,
    openReal: () => StateStore)
    extends StateStore
    with SupportsReusableIterator
    with OpensLate {
  @volatile private var opened: StateStore = _
  @volatile private var beingOpened = false
  private val definitions = mutable.ArrayBuffer.empty[StateStore => Unit]

  override def open(): Unit = store
  override def isBeingOpened: Boolean = beingOpened

  private def store: StateStore = {
    val real = opened
    if (real == null) openNow() else real
  }

  private def openNow(): StateStore = synchronized {
    if (opened == null) {
      beingOpened = true
      try {
        val real = openReal()
        definitions.foreach(define => define(real))
        opened = real
      } finally beingOpened = false
    }
    opened
  }

  private def define(definition: StateStore => Unit): Unit = synchronized {
    if (opened == null) definitions += definition else definition(opened)
  }

  /** Spark asks for this when a task ends, also if the task never came to use its state. */
  override def hasCommitted: Boolean = opened != null && opened.hasCommitted
  override def abort(): Unit = if (opened != null) opened.abort()

  override def commit(): Long = store.commit()
  override def metrics: StateStoreMetrics = store.metrics
  override def getStateStoreCheckpointInfo(): StateStoreCheckpointInfo = store.getStateStoreCheckpointInfo()
  override def allColumnFamilyNames: Set[String] = store.allColumnFamilyNames
  override def toString: String = s"LateStateStore($id, $version)"

  override def get(key: UnsafeRow, family: String): UnsafeRow = store.get(key, family)
  override def multiGet(keys: Array[UnsafeRow], family: String): Iterator[UnsafeRow] = store.multiGet(keys, family)
  override def keyExists(key: UnsafeRow, family: String): Boolean = store.keyExists(key, family)
  override def valuesIterator(key: UnsafeRow, family: String): Iterator[UnsafeRow] = store.valuesIterator(key, family)

  override def put(key: UnsafeRow, value: UnsafeRow, family: String): Unit = store.put(key, value, family)
  override def putList(key: UnsafeRow, values: Array[UnsafeRow], family: String): Unit =
    store.putList(key, values, family)
  override def merge(key: UnsafeRow, value: UnsafeRow, family: String): Unit = store.merge(key, value, family)
  override def mergeList(key: UnsafeRow, values: Array[UnsafeRow], family: String): Unit =
    store.mergeList(key, values, family)
  override def remove(key: UnsafeRow, family: String): Unit = store.remove(key, family)
  override def deleteRange(begin: UnsafeRow, end: UnsafeRow, family: String): Unit =
    store.deleteRange(begin, end, family)

  override def iterator(family: String): StateStoreIterator[UnsafeRowPair] = store.iterator(family)
  override def iteratorWithMultiValues(family: String): StateStoreIterator[UnsafeRowPair] =
    store.iteratorWithMultiValues(family)
  override def prefixScan(prefix: UnsafeRow, family: String): StateStoreIterator[UnsafeRowPair] =
    store.prefixScan(prefix, family)
  override def prefixScanWithMultiValues(prefix: UnsafeRow, family: String): StateStoreIterator[UnsafeRowPair] =
    store.prefixScanWithMultiValues(prefix, family)
  override def rangeScan(
      start: Option[UnsafeRow],
      end: Option[UnsafeRow],
      family: String): StateStoreIterator[UnsafeRowPair] = store.rangeScan(start, end, family)
  override def rangeScanWithMultiValues(
      start: Option[UnsafeRow],
      end: Option[UnsafeRow],
      family: String): StateStoreIterator[UnsafeRowPair] = store.rangeScanWithMultiValues(start, end, family)

  /** Epochs overlap only with RocksDB, which has one. */
  override def reusableIterator(family: String): ReusableIterator[UnsafeRowPair] =
    store.asInstanceOf[SupportsReusableIterator].reusableIterator(family)

  override def removeColFamilyIfExists(family: String): Boolean = store.removeColFamilyIfExists(family)
  override def createColFamilyIfAbsent(
      family: String,
      keySchema: StructType,
      valueSchema: StructType,
      keyEncoder: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean): Unit =
    define { store =>
      store.createColFamilyIfAbsent(family, keySchema, valueSchema, keyEncoder, useMultipleValuesPerKey, isInternal)
    }
  override def registerColFamily(
      family: String,
      keySchema: StructType,
      valueSchema: StructType,
      keyEncoder: KeyStateEncoderSpec,
      useMultipleValuesPerKey: Boolean,
      isInternal: Boolean): Unit =
    store.registerColFamily(family, keySchema, valueSchema, keyEncoder, useMultipleValuesPerKey, isInternal)
}
