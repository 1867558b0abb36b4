--[[
  Turns the live counts of a shard into its batch, unless one waits already. A batch never changes, and there is at most one, so that the
  memory of a shard is bounded however long Postgres is unavailable.

  KEYS[1]  live counts of a data set, as recordUsage has them
  KEYS[2]  its waiting batch
  KEYS[3]  writers of the shard
  KEYS[4]  set of the data sets that have counts of the shard

  ARGV[1]  name of the data set

  Reply: number of the batch's elements: id, texts, and last "w" and the last write of each writer; 0 when there is nothing
]]
if redis.call('EXISTS', KEYS[2]) == 0 then
  if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('SREM', KEYS[4], ARGV[1])
    return 0
  end
  redis.call('RENAME', KEYS[1], KEYS[2])
  local entries = redis.call('HGETALL', KEYS[3])
  local writers = {}
  for index = 1, #entries, 2 do
    local sequence = string.match(entries[index + 1], '^(%d+) ')
    if sequence then writers[#writers + 1] = entries[index] .. ' ' .. sequence end
  end
  redis.call('RPUSH', KEYS[2], 'w' .. table.concat(writers, '\n'))
end
return redis.call('LLEN', KEYS[2])
