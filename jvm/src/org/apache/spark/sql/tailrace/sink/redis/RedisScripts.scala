package org.apache.spark.sql.tailrace.sink.redis

import org.apache.spark.sql.tailrace.internals.RedisScript

/**
 * What Redis runs in one atomic step each. Redis does not undo what a script has done before it failed. So each one
 * first makes the change that a server without memory, or a replica, refuses, and what can fail after that is called
 * with `pcall`.
 *
 * A writer's state is `run:attempt:sequence`.
 */
private[redis] object RedisScripts {
  /** KEYS: run, writers. ARGV: epoch, 1 if the server must know the query. */
  val ClaimRun: RedisScript = RedisScript(
    """local epoch = tonumber(ARGV[1])
      |local ended = redis.call('HGET', KEYS[1], 'ended')
      |local kept = tonumber(redis.call('HGET', KEYS[1], 'keptFrom') or '0')
      |if epoch < kept then return {'old', tostring(kept)} end
      |if ARGV[2] == '1' and tonumber(ended or '-1') < epoch - 1 then return {'lost', ended or ''} end
      |local run = redis.call('HINCRBY', KEYS[1], 'run', 1)
      |redis.call('HSET', KEYS[1], 'ended', tostring(epoch - 1))
      |redis.call('DEL', KEYS[2])
      |return {'ok', tostring(run)}""".stripMargin)

  /** KEYS: run, writers, epochs, journal. ARGV: run, writer, attempt, epoch. */
  val ClaimWriter: RedisScript = RedisScript(
    """local run = redis.call('HGET', KEYS[1], 'run')
      |if run ~= ARGV[1] then return {'other', run or ''} end
      |local found = redis.call('HGET', KEYS[2], ARGV[2])
      |local sequence = '0'
      |if found then
      |  local attempt, last = string.match(found, '^%d+:(%d+):(%d+)$')
      |  if tonumber(attempt) > tonumber(ARGV[3]) then return {'newer', run} end
      |  sequence = last
      |end
      |redis.call('HSET', KEYS[2], ARGV[2], run .. ':' .. ARGV[3] .. ':' .. sequence)
      |redis.call('SADD', KEYS[3], ARGV[4])
      |if not found then redis.call('RPUSH', KEYS[4], '') end
      |return {'ok', sequence}""".stripMargin)

  /**
   * KEYS: run, writers, journal. ARGV: writer, its state before, its state after, what the journal says, time to live
   * or 0, maximal length or 0, the rows as [[PackedRows]]. Returns the rows that Redis rejected, one in a line: number
   * and reason.
   *
   * The rows are one argument because Redis handles each argument several times before a script sees it: with one for
   * each value, that was a third of the server's work.
   */
  def write(structure: Structure): RedisScript = RedisScript(
    s"""local found = redis.call('HGET', KEYS[2], ARGV[1])
      |if found == ARGV[3] then
      |  local rejected = redis.call('HGET', KEYS[2], ARGV[1] .. ':rejected') or ''
      |  if string.sub(rejected, 1, #found + 1) == found .. ' ' then return {'ok', string.sub(rejected, #found + 2)} end
      |  return {'ok', ''}
      |end
      |if found ~= ARGV[2] then return {'other', redis.call('HGET', KEYS[1], 'run') or '', found or ''} end
      |redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
      |local call, ttl, rejected = redis.pcall, ARGV[5], {}
      |local rows = cmsgpack.unpack(ARGV[7])
      |local at, number, size = 1, 0, #rows
      |while at < size do
      |  local key, first, last = rows[at], at + 2, at + 1 + rows[at + 1]
      |  local result
      |  ${commandOf(structure)}
      |  if type(result) == 'table' and result.err then
      |    rejected[#rejected + 1] = number .. ' ' .. result.err
      |  elseif ttl ~= '0' then
      |    call('PEXPIRE', key, ttl)
      |  end
      |  at, number = last + 1, number + 1
      |end
      |local noted = table.concat(rejected, '\\n')
      |redis.call('RPUSH', KEYS[3], #noted .. ':' .. noted .. ARGV[4])
      |if noted ~= '' then redis.call('HSET', KEYS[2], ARGV[1] .. ':rejected', ARGV[3] .. ' ' .. noted) end
      |return {'ok', noted}""".stripMargin)

  private def commandOf(structure: Structure): String = structure match {
    case Structure.Hash =>
      """local set = tonumber(rows[first])
        |  if set > 0 then result = call('HSET', key, unpack(rows, first + 1, first + set)) end
        |  if first + set < last and not (type(result) == 'table' and result.err) then
        |    result = call('HDEL', key, unpack(rows, first + set + 1, last))
        |  end""".stripMargin
    case Structure.Text => "result = call('SET', key, rows[first])"
    case Structure.SortedSet => "result = call('ZADD', key, rows[first], rows[first + 1])"
    case Structure.Stream =>
      """if ARGV[6] == '0' then result = call('XADD', key, '*', unpack(rows, first, last))
        |  else
        |    result = call('XADD', key, 'MAXLEN', '~', ARGV[6], '*', unpack(rows, first, last))
        |  end""".stripMargin
  }

  /** KEYS: run, writers. ARGV: run, epoch; then for each task its writer and the state that it must have. */
  val EndEpoch: RedisScript = RedisScript(
    """local run = redis.call('HGET', KEYS[1], 'run')
      |if run ~= ARGV[1] then return {'other', run or ''} end
      |local ended = redis.call('HGET', KEYS[1], 'ended')
      |if ended == ARGV[2] then return {'ok', ''} end
      |if tonumber(ended) ~= tonumber(ARGV[2]) - 1 then return {'lost', ''} end
      |for at = 3, #ARGV, 2 do
      |  if redis.call('HGET', KEYS[2], ARGV[at]) ~= ARGV[at + 1] then return {'lost', ''} end
      |end
      |redis.call('HSET', KEYS[1], 'ended', ARGV[2])
      |return {'ok', ''}""".stripMargin)

  /** KEYS: run, writers, epochs. ARGV: run, the first epoch to keep, the beginning of a journal's key. */
  val Purge: RedisScript = RedisScript(
    """if redis.call('HGET', KEYS[1], 'run') ~= ARGV[1] then return {'other', ''} end
      |local before = tonumber(ARGV[2])
      |if before > tonumber(redis.call('HGET', KEYS[1], 'keptFrom') or '0') then
      |  redis.call('HSET', KEYS[1], 'keptFrom', ARGV[2])
      |end
      |for _, epoch in ipairs(redis.call('SMEMBERS', KEYS[3])) do
      |  if tonumber(epoch) < before then
      |    redis.call('UNLINK', ARGV[3] .. epoch)
      |    redis.call('SREM', KEYS[3], epoch)
      |  end
      |end
      |for _, writer in ipairs(redis.call('HKEYS', KEYS[2])) do
      |  if tonumber(string.match(writer, '^%d+')) < before then redis.call('HDEL', KEYS[2], writer) end
      |end
      |return {'ok', ''}""".stripMargin)
}
