--[[
  Adds requests that a replica admitted on its own while Redis was away to the key's window. The count may exceed the limit
  by this: those requests were made. A window of another period is left alone.

  KEYS[1]  window: requests counted in the open window
  KEYS[2]  period: token of the period that the open window has

  ARGV[1]  token of the period under which the requests were admitted
  ARGV[2]  requests to add
  ARGV[3]  when a window that opens now ends, in milliseconds since 1970

  Answer: requests counted in the window now; 0 when nothing was added
]]
local period = redis.call('GET', KEYS[2])
if period == ARGV[1] and redis.call('EXISTS', KEYS[1]) == 1 then
  return redis.call('INCRBY', KEYS[1], ARGV[2])
end
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
redis.call('SET', KEYS[2], ARGV[1], 'PXAT', ARGV[3])
return tonumber(ARGV[2])
