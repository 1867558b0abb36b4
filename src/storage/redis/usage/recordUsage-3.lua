--[[
  Adds what one writer recorded for the keys of a shard to the shard's live counts, once, however often the same write is sent.
  The counts are only appended: adding them up here would cost Redis thirty times as much.

  KEYS[1]  live counts of this data set: a list of "<id> <times compacted>" and then texts of slices
  KEYS[2]  writers of the shard: hash of writer to "<sequence of its last write> <seconds since 1970>", and "#id", the last id given
  KEYS[3]  set of the data sets that have counts of the shard

  ARGV[1]  writer: one run of a replica
  ARGV[2]  sequence of the write: grows from one write of the writer to the next
  ARGV[3]  sequence of its last acknowledged write; "" = not checked
  ARGV[4]  name of this data set
  ARGV[5]  text of the slices

  Reply: 1 written, now or earlier; 0 nothing done, because the writer's last acknowledged write is not known here
]]
local DAY_S = 86400
local MANY_WRITERS = 64

local entry = redis.call('HGET', KEYS[2], ARGV[1])
local last = entry and tonumber(string.match(entry, '^%d+')) or 0
if last >= tonumber(ARGV[2]) then return 1 end
if ARGV[3] ~= '' and last ~= tonumber(ARGV[3]) then return 0 end

local time = redis.call('TIME')
if redis.call('RPUSHX', KEYS[1], ARGV[5]) == 0 then
  -- Microseconds, so that ids grow even when these keys were lost; above the last one, so that they grow even when the clock went back.
  local id = math.max(time[1] * 1000000 + time[2], (redis.call('HGET', KEYS[2], '#id') or 0) + 1)
  local text = string.format('%.0f', id)
  redis.call('RPUSH', KEYS[1], text .. ' 0', ARGV[5])
  redis.call('HSET', KEYS[2], '#id', text)
  redis.call('SADD', KEYS[3], ARGV[4])
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. ' ' .. time[1])

if not entry and redis.call('HLEN', KEYS[2]) > MANY_WRITERS then
  -- Every start of a replica is a new writer: those that have been silent for a day will not repeat a write.
  local entries = redis.call('HGETALL', KEYS[2])
  for index = 1, #entries, 2 do
    local seconds = string.match(entries[index + 1], ' (%d+)$')
    if seconds and time[1] - seconds > DAY_S then redis.call('HDEL', KEYS[2], entries[index]) end
  end
end
return 1
