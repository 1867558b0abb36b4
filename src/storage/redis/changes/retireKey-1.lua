--[[
  Replaces the version of a deleted key with a tombstone, so that no copy of its record is installed again and nothing is
  counted for it.

  KEYS[1]  version: shared version of the key's record, then the end of its cached rejections, if there is one (see decideRequests)

  ARGV[1]  milliseconds that the tombstone is kept

  Reply: milliseconds until no replica repeats a rejection from before the deletion
]]
local rejections = string.match(redis.call('GET', KEYS[1]) or '', ' (%d+)$')
redis.call('SET', KEYS[1], '-', 'PX', ARGV[1])
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return math.max((tonumber(rejections) or 0) - nowMs, 0)
