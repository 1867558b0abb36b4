--[[
  Replaces the first texts of a shard's live counts with one text that has their sums, unless the counts became a batch meanwhile or
  another replica did the same.

  KEYS[1]  live counts, as recordUsage has them

  ARGV[1]  the first element, as it was read: id and times compacted
  ARGV[2]  how many texts were read
  ARGV[3]  the text that replaces them

  Reply: 1 replaced, 0 not
]]
local head = redis.call('LINDEX', KEYS[1], 0)
if head ~= ARGV[1] then return 0 end
local id, times = string.match(head, '^(%d+) (%d+)$')
-- The list must not be empty in between: that would remove the Redis key, and a script can't create a key while its slot moves away.
redis.call('LTRIM', KEYS[1], ARGV[2], -1)
redis.call('LSET', KEYS[1], 0, ARGV[3])
redis.call('LPUSH', KEYS[1], id .. ' ' .. string.format('%.0f', times + 1))
return 1
