--[[
  Gives a waiting batch a higher id. Needed when Postgres knows a higher one although this batch waits: then it was never added, and the
  clock that ids are made from went back (another server took over and knew nothing of the last ids).

  KEYS[1]  live counts
  KEYS[2]  the batch that waits
  KEYS[3]  writes: "#id" is the last id given

  ARGV[1]  id of the batch
  ARGV[2]  id that the new ones must be above

  Answer: 1 renumbered, 0 the batch was not there: somebody else had it added
]]
if redis.call('HGET', KEYS[2], 'id') ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local id = math.max(tonumber(time[1]) * 1000000 + tonumber(time[2]), tonumber(ARGV[2]) + 1)
redis.call('HSET', KEYS[2], 'id', string.format('%.0f', id))
local last = string.format('%.0f', id + 1)
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'id', last) end
redis.call('HSET', KEYS[3], '#id', last)
redis.call('EXPIRE', KEYS[3], 86400)
return 1
