--[[
  Turns a key's live counts into its batch, unless one waits already. A batch never changes, and there is at most one, so that what a
  key needs here is bounded however long Postgres is away.

  KEYS[1]  live counts, as recordUsage has them
  KEYS[2]  the batch that waits

  Answer: fields and values of the batch, alternating; empty when there is nothing
]]
if redis.call('EXISTS', KEYS[2]) == 0 then
  if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
  redis.call('RENAME', KEYS[1], KEYS[2])
end
return redis.call('HGETALL', KEYS[2])
