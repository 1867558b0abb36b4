--[[
  Removes a batch that Postgres has, unless another batch has taken its place.

  KEYS[1]  the waiting batch

  ARGV[1]  id of the batch
  ARGV[2]  "LINDEX" for a batch of a shard, "HGET" for one of a key as version 0.1 left it
  ARGV[3]  "0" or "id": where such a batch has its id

  Reply: 1 removed, 0 it was not there
]]
local id = redis.call(ARGV[2], KEYS[1], ARGV[3])
if not id or string.match(id, '^%d+') ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1])
