--[[
  Removes a batch that Postgres has, unless another batch has taken its place.

  KEYS[1]  the waiting batch

  ARGV[1]  id of the batch

  Reply: 1 removed, 0 it was not there
]]
local id = redis.call('LINDEX', KEYS[1], 0)
if not id or string.match(id, '^%d+') ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1])
