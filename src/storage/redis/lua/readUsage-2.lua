--[[
  Reads a key's batch and live counts as they are at one instant.

  KEYS[1]  live counts, as recordUsage has them
  KEYS[2]  the batch that waits

  Answer: { fields and values of the batch, fields and values of the live counts }, each empty when there is none
]]
return { redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[1]) }
