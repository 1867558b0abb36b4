--[[
  Marks a key's record as being changed, before the record store is written. A second change that begins meanwhile is
  noted, because then neither can know which version is the last. A deleted key stays deleted.

  KEYS[1]  version: shared version of the key's record

  ARGV[1]  milliseconds after which the mark lapses

  Answer: 1
]]
local shared = redis.call('GET', KEYS[1])
if shared == '-' then return 1 end
local mark = (shared == '*' or shared == '**') and '**' or '*'
redis.call('SET', KEYS[1], mark, 'PX', ARGV[1])
return 1
