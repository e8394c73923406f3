package org.apache.spark.sql.tailrace.internals

import java.util.UUID

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.tailrace.internals.names.ByName
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/** What the RDD of a stateful operator consists of. */
private[tailrace] object StateStoreRdd extends ByName {
  private val Base = classOf[BaseStateStoreRDD[_, _]].getName
  private val checkpointLocation = field[String](Base, "checkpointLocation")
  private val queryRunId = field[UUID](Base, "queryRunId")
  private val operatorId = field[Long](Base, "operatorId")
  private val storeConf = field[StateStoreConf](Base, "storeConf")
  private val hadoopConf = field[Broadcast[SerializableConfiguration]](Base, "hadoopConfBroadcast")

  private val Own = classOf[StateStoreRDD[_, _]].getName
  private val dataRdd = field[RDD[InternalRow]](Own, "dataRDD")
  private val update = field[UpdateState](Own, "storeUpdateFunction")
  private val storeVersion = field[Long](Own, "storeVersion")
  private val schemas = field[Option[StateSchemaBroadcast]](Own, "stateSchemaBroadcast")
  private val keySchema = field[StructType](Own, "keySchema")
  private val valueSchema = field[StructType](Own, "valueSchema")
  private val keyEncoder = field[KeyStateEncoderSpec](Own, "keyStateEncoderSpec")
  private val columnFamilies = field[Boolean](Own, "useColumnFamilies")
  private val multipleValues = field[Boolean](Own, "useMultipleValuesPerKey")

  /** Processes the rows of a task with its state. */
  type UpdateState = (StateStore, Iterator[InternalRow]) => Iterator[InternalRow]

  def inputOf(rdd: StateStoreRDD[_, _]): RDD[InternalRow] = dataRdd.of(rdd)

  def updateOf(rdd: StateStoreRDD[_, _]): UpdateState = update.of(rdd)

  def openingOf(rdd: StateStoreRDD[_, _]): StateStoreOpening = StateStoreOpening(
    checkpointLocation.of(rdd),
    queryRunId.of(rdd),
    operatorId.of(rdd),
    storeVersion.of(rdd),
    schemas.of(rdd),
    keySchema.of(rdd),
    valueSchema.of(rdd),
    keyEncoder.of(rdd),
    columnFamilies.of(rdd),
    multipleValues.of(rdd),
    storeConf.of(rdd),
    hadoopConf.of(rdd))
}

/** Opens the state stores of an operator as Spark does, but with a checkpoint that is named when it is opened. */
private[tailrace] final case class StateStoreOpening(
    checkpointLocation: String,
    run: UUID,
    operator: Long,
    version: Long,
    schemas: Option[StateSchemaBroadcast],
    keySchema: StructType,
    valueSchema: StructType,
    keyEncoder: KeyStateEncoderSpec,
    useColumnFamilies: Boolean,
    useMultipleValuesPerKey: Boolean,
    conf: StateStoreConf,
    hadoopConf: Broadcast[SerializableConfiguration]) {

  def idOf(partition: Int): StateStoreId = StateStoreId(checkpointLocation, operator, partition)

  def open(partition: Int, checkpoint: String): StateStore = StateStore.get(
    StateStoreProviderId(idOf(partition), run),
    keySchema,
    valueSchema,
    keyEncoder,
    version,
    Some(checkpoint),
    schemas,
    useColumnFamilies,
    conf,
    hadoopConf.value.value,
    useMultipleValuesPerKey)
}
