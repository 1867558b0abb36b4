--[[
  Marks a key's record as being changed, before the record store is written. A second change that begins meanwhile is
  noted, because then neither can know which version is the last. A deleted key stays deleted.

  KEYS[1]  version: shared version of the key's record, then the end of its cached rejections, if there is one (see decideRequests)

  ARGV[1]  milliseconds after which the mark expires

  Reply: 1
]]
local known, rejections = string.match(redis.call('GET', KEYS[1]) or '', '^(%S*)( ?%d*)$')
if known == '-' then return 1 end
local mark = (known == '*' or known == '**') and '**' or '*'
redis.call('SET', KEYS[1], mark .. (rejections or ''), 'PX', ARGV[1])
return 1
