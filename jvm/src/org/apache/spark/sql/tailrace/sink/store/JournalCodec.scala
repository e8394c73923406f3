package org.apache.spark.sql.tailrace.sink.store

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}

import scala.collection.mutable

import org.apache.spark.sql.tailrace.origin.{RowId, SourcePartition}
import org.apache.spark.sql.tailrace.sink.dedup.{OutputPosition, WriterMark, WrittenRow}

/** What identifies a row that was written. */
private[sink] trait JournalRow {
  def source: SourcePartition
  def row: RowId
  def keyHash: Long
  def contentHash: Long
}

/**
 * The rows of a batch in a few bytes each: a version, the source partitions that occur, and for each row the
 * index of its partition, offset, path, ordinal and two hashes.
 */
private[sink] object JournalCodec {
  private val Version = 1
  private val RowBytes = 40

  def encode(rows: Seq[JournalRow]): Array[Byte] = {
    val bytes = new ByteArrayOutputStream(64 + RowBytes * rows.length)
    val out = new DataOutputStream(bytes)
    val index = new SourceIndex(rows)
    val sources = index.sources
    out.writeByte(Version)
    out.writeInt(sources.length)
    sources.foreach { at =>
      out.writeInt(at.source)
      out.writeUTF(at.topic)
      out.writeInt(at.partition)
    }
    out.writeInt(rows.length)
    rows.foreach { row =>
      out.writeInt(index.of(row.source))
      out.writeLong(row.row.offset)
      out.writeLong(row.row.path)
      out.writeInt(row.row.ordinal)
      out.writeLong(row.keyHash)
      out.writeLong(row.contentHash)
    }
    bytes.toByteArray
  }

  /** Rows of one partition mostly follow each other, and share the object that names it. */
  private final class SourceIndex(rows: Seq[JournalRow]) {
    private val indexes = mutable.LinkedHashMap.empty[SourcePartition, Int]
    private var last: SourcePartition = _
    private var lastIndex = 0
    rows.foreach(row => of(row.source))

    def sources: Seq[SourcePartition] = indexes.keys.toSeq

    def of(source: SourcePartition): Int = {
      if (source ne last) {
        last = source
        lastIndex = indexes.getOrElseUpdate(source, indexes.size)
      }
      lastIndex
    }
  }

  def decode(bytes: Array[Byte]): Seq[JournalRow] = {
    val in = new DataInputStream(new ByteArrayInputStream(bytes))
    val version = in.readByte().toInt
    require(version == Version, s"the journal was written by another version of Tailrace ($version)")
    val sources = Seq.fill(in.readInt())(SourcePartition(in.readInt(), in.readUTF(), in.readInt())).toIndexedSeq
    Seq.fill(in.readInt())(Decoded(
      sources(in.readInt()),
      RowId(in.readLong(), in.readLong(), in.readInt()),
      in.readLong(),
      in.readLong()))
  }

  private final case class Decoded(source: SourcePartition, row: RowId, keyHash: Long, contentHash: Long)
      extends JournalRow
}

/** Collects the rows of a journal that is read in the order of writing. */
private[sink] final class JournalReader(query: String, target: String) {
  private val found = mutable.ArrayBuffer.empty[WrittenRow]

  def rows: Seq[WrittenRow] = found.toSeq

  /** @param without the numbers of rows that were not written */
  def add(task: Int, run: Long, bytes: Array[Byte], without: Set[Int] = Set.empty): Unit = {
    val rows = JournalCodec.decode(bytes)
    (if (without.isEmpty) rows else rows.zipWithIndex.collect { case (row, at) if !without(at) => row }).foreach(
      add(task, run, _))
  }

  private def add(task: Int, run: Long, read: JournalRow): Unit = {
    val sequence = found.length.toLong
    found += WrittenRow(
      read.source,
      read.row,
      WriterMark(query, run.toInt, task, sequence),
      read.keyHash,
      read.contentHash,
      contentId = None,
      OutputPosition(target, partition = 0, sequence))
  }
}
