package org.apache.spark.sql.tailrace.sink.redis

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.util.Utils

/**
 * The server that a query last wrote to, in a file of its checkpoint. A server that should know the query but does not
 * has lost its data; one that is new to the query has not.
 */
private[redis] final class KnownServer(checkpoint: String, hadoop: Configuration) {
  private val folder = new Path(checkpoint, "tailrace-redis")
  private val file = new Path(folder, "server")
  private val files = CheckpointFileManager.create(folder, hadoop)

  def is(url: String): Boolean = files.exists(file) && {
    val in = files.open(file)
    Utils.tryWithSafeFinally(new String(in.readAllBytes(), UTF_8) == url)(in.close())
  }

  def set(url: String): Unit = if (!is(url)) {
    files.mkdirs(folder)
    val out = files.createAtomic(file, overwriteIfPossible = true)
    try {
      out.write(url.getBytes(UTF_8))
      out.close()
    } catch {
      case failure: Throwable =>
        out.cancel()
        throw failure
    }
  }
}
