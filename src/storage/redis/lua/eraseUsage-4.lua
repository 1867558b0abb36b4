--[[
  Removes all usage of a deleted key, and sees to it that late records are dropped.

  KEYS[1]  live counts
  KEYS[2]  the batch that waits
  KEYS[3]  writes
  KEYS[4]  version of the key's record: gets the tombstone that retireKey leaves

  ARGV[1]  milliseconds that the tombstone is kept

  Answer: 1
]]
redis.call('SET', KEYS[4], '-', 'PX', ARGV[1])
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
return 1
