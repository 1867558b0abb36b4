--[[
  Forgets a deleted key: leaves a tombstone, so that no copy of its record is installed again and nothing counts for it.

  KEYS[1]  version: shared version of the key's record, with the end of its rejections where it has one (see decideRequests)

  ARGV[1]  milliseconds that the tombstone is kept

  Response: milliseconds until no replica repeats a rejection from before the deletion
]]
local rejections = string.match(redis.call('GET', KEYS[1]) or '', ' (%d+)$')
redis.call('SET', KEYS[1], '-', 'PX', ARGV[1])
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return math.max((tonumber(rejections) or 0) - nowMs, 0)
