--[[
  Renews the lock on a shard, unless it has ended or is another flusher's.

  KEYS[1]  the lock

  ARGV[1]  name that the flusher has put into the lock
  ARGV[2]  how long it lasts from now on, in milliseconds

  Reply: 1 renewed, 0 the lock is not held
]]
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
