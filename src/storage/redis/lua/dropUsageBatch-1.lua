--[[
  Removes a batch that Postgres has, unless another has taken its place.

  KEYS[1]  the batch that waits

  ARGV[1]  id of the batch

  Answer: 1 removed, 0 it was not there
]]
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1])
