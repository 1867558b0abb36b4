--[[
  Ends a change that markStale began: the new version becomes the shared one, if nothing else happened since. Another
  change that overlapped, or one that ended after our mark had expired, may have written the record after us. Then the
  mark is set for its full time, and every request reads the record store until it expires. A deleted key stays deleted.

  KEYS[1]  version: shared version of the key's record, then the end of its cached rejections, if there is one (see decideRequests)

  ARGV[1]  the new version
  ARGV[2]  milliseconds that a version is kept
  ARGV[3]  milliseconds after which a mark expires

  Reply: milliseconds until no replica repeats a rejection from before the change
]]
local known, rejections = string.match(redis.call('GET', KEYS[1]) or '', '^(%S*)( ?%d*)$')
rejections = rejections or ''
if known == '-' then return 0 end
if known ~= ARGV[1] then
  if known == '' or known == '*' then
    redis.call('SET', KEYS[1], ARGV[1] .. rejections, 'PX', ARGV[2])
  else
    redis.call('SET', KEYS[1], '**' .. rejections, 'PX', ARGV[3])
  end
end
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return math.max((tonumber(rejections) or 0) - nowMs, 0)
