--[[
  Closes windows of a key: the next request that is counted in one opens a new one.

  KEYS[1]    version: shared version of the key's record
  KEYS[2]    index: sorted set of the open windows of customers by their end
  KEYS[3..]  names to remove: windows, and the units granted in them

  ARGV[1]    channel on which the change is published
  ARGV[2]    the message
  ARGV[3..]  members of the index that are removed

  Reply: milliseconds until no replica repeats a rejection from before this change
]]
local function part(list, from) return unpack(list, from) end
redis.call('UNLINK', part(KEYS, 3))
if #ARGV > 2 then redis.call('ZREM', KEYS[2], part(ARGV, 3)) end
redis.call('PUBLISH', ARGV[1], ARGV[2])
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local noted = string.match(redis.call('GET', KEYS[1]) or '', ' (%d+)$')
return math.max((tonumber(noted) or 0) - nowMs, 0)
