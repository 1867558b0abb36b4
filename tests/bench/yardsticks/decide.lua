--[[
  What both yardsticks ask of Redis for a request: an exact, shared count in a window that opens with the first request.

  KEYS[1]  count of the key's window
  ARGV[1]  limit in requests
  ARGV[2]  length of a window in milliseconds

  Response: { 1 for allowed or 0, requests left, milliseconds until the window ends }
]]
local limit = tonumber(ARGV[1])
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
if count >= limit then return { 0, 0, redis.call('PTTL', KEYS[1]) } end
count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return { 1, limit - count, redis.call('PTTL', KEYS[1]) }
