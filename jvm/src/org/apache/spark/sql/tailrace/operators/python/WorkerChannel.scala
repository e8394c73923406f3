package org.apache.spark.sql.tailrace.operators.python

import java.io.{IOException, InputStream}
import java.net.StandardSocketOptions
import java.nio.ByteBuffer
import java.nio.channels.{SelectionKey, Selector, SocketChannel}

/**
 * The socket to a worker: one thread reads while another writes. It never blocks in the socket itself, because
 * interrupting a blocked thread closes the socket.
 *
 * @param beforeWaiting called by the reading thread when there is nothing to read; returns how many milliseconds to
 *                      wait before it is called again, and may throw to give up
 */
private[python] final class WorkerChannel(channel: SocketChannel, beforeWaiting: () => Long) extends InputStream {
  if (channel.supportedOptions.contains(StandardSocketOptions.TCP_NODELAY)) {
    channel.setOption[java.lang.Boolean](StandardSocketOptions.TCP_NODELAY, true)
  }
  channel.configureBlocking(false)
  private val readable = Selector.open()
  private val writable = Selector.open()
  channel.register(readable, SelectionKey.OP_READ)
  channel.register(writable, SelectionKey.OP_WRITE)

  @volatile private var lastRead = System.nanoTime()

  /** The `System.nanoTime` at which bytes were last read. */
  def lastReadNanos: Long = lastRead

  override def read(): Int = {
    val one = new Array[Byte](1)
    if (read(one, 0, 1) < 0) -1 else one(0) & 0xff
  }

  override def read(bytes: Array[Byte], offset: Int, length: Int): Int = {
    val target = ByteBuffer.wrap(bytes, offset, length)
    var count = channel.read(target)
    while (count == 0) {
      readable.select(beforeWaiting())
      readable.selectedKeys().clear()
      count = channel.read(target)
    }
    lastRead = System.nanoTime()
    count
  }

  /** Writes all of `bytes`. While the worker does not accept them, it keeps trying as long as `goOn` is true. */
  def write(bytes: ByteBuffer, goOn: => Boolean): Unit = {
    while (bytes.hasRemaining) {
      if (channel.write(bytes) == 0) {
        if (!goOn || Thread.currentThread().isInterrupted) {
          throw new IOException("the task has ended")
        }
        writable.select(WorkerChannel.RetryMs)
        writable.selectedKeys().clear()
      }
    }
  }

  /** Makes a waiting reader call `beforeWaiting` again. */
  def wakeReader(): Unit = readable.wakeup()

  /** Detaches from the socket without closing it, because the worker may serve another task. */
  override def close(): Unit = {
    readable.close()
    writable.close()
  }
}

private object WorkerChannel {
  private val RetryMs = 100L
}
