--[[
  Records a heartbeat of this replica, forgets replicas without one for too long, and counts the rest.

  KEYS[1]  replicas: sorted set of replica ids, score = the server's time of the last heartbeat in milliseconds

  ARGV[1]  id of this replica
  ARGV[2]  milliseconds without a heartbeat after which a replica counts as gone

  Reply: number of live replicas, this one included
]]
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', KEYS[1], string.format('%.0f', nowMs), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', nowMs - tonumber(ARGV[2])))
-- A heartbeat that far ahead is from before the server's clock went back, or from no replica.
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', nowMs + tonumber(ARGV[2])), '+inf')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])
