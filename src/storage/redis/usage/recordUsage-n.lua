--[[
  Adds the usage that a writer recorded to the live counts of some shards, once, however often the same write is sent. The counts are
  only appended: adding them up here would cost Redis thirty times as much.

  KEYS of each write
    live counts of this data set: a list of "<id> <times compacted>" and then texts of slices
    writers of the shard: hash of writer to "<sequence of its last write> <seconds since 1970>", and "#id", the last id given
    set of the data sets that have counts of the shard

  ARGV of each write
    writer: one run of a replica
    sequence of the write: grows from one write of the writer to the next
    sequence of its last acknowledged write; "" = not checked
    name of this data set
    text of the slices

  Reply: for each write 1 written, now or earlier; 0 nothing done, because the writer's last acknowledged write is not known here
]]
local DAY_S = 86400
local MANY_WRITERS = 64
local call = redis.call
local time = call('TIME')

local function record(live, writers, sources, writer, sequence, previous, source, text)
  local entry = call('HGET', writers, writer)
  local last = entry and tonumber(string.match(entry, '^%d+')) or 0
  if last >= tonumber(sequence) then return 1 end
  if previous ~= '' and last ~= tonumber(previous) then return 0 end

  if call('RPUSHX', live, text) == 0 then
    -- Microseconds, so that ids grow even when these keys were lost; above the last one, so that they grow even when the clock went back.
    local id = math.max(time[1] * 1000000 + time[2], (call('HGET', writers, '#id') or 0) + 1)
    local idText = string.format('%.0f', id)
    -- First, because it fails where the set is none: nothing is then counted, and the write may be sent again.
    call('SADD', sources, source)
    call('RPUSH', live, idText .. ' 0', text)
    call('HSET', writers, '#id', idText)
  end
  call('HSET', writers, writer, sequence .. ' ' .. time[1])

  if not entry and call('HLEN', writers) > MANY_WRITERS then
    -- Every start of a replica is a new writer: those that wrote nothing for a day will not repeat a write.
    local entries = call('HGETALL', writers)
    for index = 1, #entries, 2 do
      local seconds = string.match(entries[index + 1], ' (%d+)$')
      if seconds and time[1] - seconds > DAY_S then call('HDEL', writers, entries[index]) end
    end
  end
  return 1
end

local replies = {}
for i = 1, #KEYS / 3 do
  local k, a = 3 * i - 3, 5 * i - 5
  replies[i] = record(KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
end
return replies
