--[[
  Removes a shared version that the record store contradicts, unless another one has taken its place, or a change is under way.

  KEYS[1]  version: shared version of the key's record, then the end of its cached rejections, if there is one (see decideRequests)

  ARGV[1]  the outdated version

  Reply: 1 when it was removed, else 0
]]
local known = string.match(redis.call('GET', KEYS[1]) or '', '^%S+')
if known ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
