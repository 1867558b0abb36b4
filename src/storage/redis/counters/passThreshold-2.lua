--[[
  Notes that a window passes a threshold. Costs that are settled may subtract units, so that a count passes it several times.

  KEYS[1]  granted: units granted in the window beyond its limit
  KEYS[2]  passed: hash of the thresholds that the window has passed; each has the state of the window at that time

  ARGV[1]  threshold in percent
  ARGV[2]  limit at that time
  ARGV[3]  when the window ends, in milliseconds since 1970

  Reply: 1 if the window has not passed it before in this state: with this end, limit and units granted; otherwise 0
]]
local state = ARGV[3] .. ' ' .. ARGV[2] .. ' ' .. (redis.call('GET', KEYS[1]) or '0')
if redis.call('HGET', KEYS[2], ARGV[1]) == state then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], state)
redis.call('PEXPIREAT', KEYS[2], ARGV[3])
return 1
