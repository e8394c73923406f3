package org.apache.spark.sql.tailrace.testing

import java.util.{List => JList}
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import net.razorvine.pickle.Unpickler

import org.apache.spark.sql.{DataFrame, Encoder, Row}
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming.{Offset, PartitionOffset, SupportsRealTimeRead}
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.execution.python.EvaluatePython
import org.apache.spark.sql.execution.streaming.runtime.ContinuousRecordPartitionOffset
import org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
import org.apache.spark.sql.types.{DataType, StructType}

/** A source whose rows a test adds at any time. */
final class TestSource(session: SparkSession, schemaJson: String, partitions: Int, clock: TestClock) {
  private val schema = DataType.fromJson(schemaJson).asInstanceOf[StructType]
  private implicit val encoder: Encoder[Row] = ExpressionEncoder(schema)
  private val stream = new TestStream(session, partitions, clock)

  def rows: DataFrame = stream.toDF()

  /** Adds rows that Python has pickled. It starts no job, which would take slots from the query. */
  def add(partition: Int, pickled: Array[Byte]): Unit = {
    val fromPython = EvaluatePython.makeFromJava(schema)
    val toRow = CatalystTypeConverters.createToScalaConverter(schema)
    val rows = new Unpickler().loads(pickled).asInstanceOf[JList[AnyRef]].asScala.toSeq
    stream.addData(partition, rows.map(row => toRow(fromPython(row)).asInstanceOf[Row]))
  }

  /** True if tasks have read all rows that were added. */
  def isRead: Boolean = {
    val read = (0 until partitions).map(partition => partition -> stream.positions.getOrDefault(partition, 0).intValue)
    stream.deserializeOffset(stream.latestOffset(null, null).json()).partitionNums == read.toMap
  }

  private[testing] def isCommittedIn(offsets: collection.Map[_, Offset]): Boolean =
    offsets.collectFirst {
      case (source, offset) if source == stream => offset.json() == stream.latestOffset(null, null).json()
    }
      .getOrElse(false)
}

/** Spark's own source for tests, which also reports how far its readers are. */
private final class TestStream(session: SparkSession, partitions: Int, clock: TestClock)(implicit encoder: Encoder[Row])
    extends LowLatencyMemoryStream[Row](0, session, partitions, clock) {
  private val id = TestStream.newPositions()

  def positions: ConcurrentHashMap[Int, Int] = TestStream.positions.get(id)

  override def createReaderFactory(): PartitionReaderFactory =
    new ObservedReaderFactory(super.createReaderFactory(), id)

  override def stop(): Unit = {
    super.stop()
    positions.clear()
  }
}

private object TestStream {
  val positions = new ConcurrentHashMap[Int, ConcurrentHashMap[Int, Int]]

  def newPositions(): Int = synchronized {
    val id = positions.size
    positions.put(id, new ConcurrentHashMap[Int, Int])
    id
  }
}

private final class ObservedReaderFactory(factory: PartitionReaderFactory, id: Int) extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new ObservedReader(factory.createReader(partition).asInstanceOf[SupportsRealTimeRead[InternalRow]], id)
}

private final class ObservedReader(reader: SupportsRealTimeRead[InternalRow], id: Int)
    extends SupportsRealTimeRead[InternalRow] {
  private val positions = TestStream.positions.get(id)
  note()

  override def nextWithTimeout(startedAt: java.lang.Long, timeoutMs: java.lang.Long): RecordStatus = {
    val status = reader.nextWithTimeout(startedAt, timeoutMs)
    note()
    status
  }

  override def next(): Boolean = reader.next()
  override def get(): InternalRow = reader.get()
  override def getOffset(): PartitionOffset = reader.getOffset
  override def close(): Unit = reader.close()

  private def note(): Unit = reader.getOffset match {
    case ContinuousRecordPartitionOffset(partition, offset) => positions.put(partition, offset)
    case _ =>
  }
}
