--[[
  Forgets a deleted key: removes its counters and leaves a tombstone, so that no copy of its record is installed again.

  KEYS[1]  version: shared version of the key's record
  KEYS[2]  window
  KEYS[3]  period

  ARGV[1]  milliseconds that the tombstone is kept

  Answer: 1
]]
redis.call('SET', KEYS[1], '-', 'PX', ARGV[1])
redis.call('DEL', KEYS[2], KEYS[3])
return 1
