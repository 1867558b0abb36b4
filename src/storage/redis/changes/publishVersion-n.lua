--[[
  Ends a change that markStale began: the new versions become the shared ones, if nothing else happened since. Another
  change that overlapped, or one that ended after our mark had expired, may have written the record after us. Then the
  mark is set for its full time, and every request reads the record store until it expires. A deleted key stays deleted.

  KEYS     version: shared version of a key's record, then the end of its cached rejections, if there is one (see decideRequests)

  ARGV[1]  milliseconds that a version is kept
  ARGV[2]  milliseconds after which a mark expires
  ARGV[3]  and the following: the new versions, in the order of the keys

  Reply: milliseconds until no replica repeats a rejection of one of the keys from before the change
]]
local rejectedUntil = 0
for number, key in ipairs(KEYS) do
  local version = ARGV[number + 2]
  local known, rejections = string.match(redis.call('GET', key) or '', '^(%S*)( ?%d*)$')
  rejections = rejections or ''
  if known == '-' then
    -- A tombstone that lost its expiry would keep the key away for good.
    redis.call('PEXPIRE', key, ARGV[1], 'NX')
  else
    if known == '' or known == '*' then
      redis.call('SET', key, version .. rejections, 'PX', ARGV[1])
    elseif known ~= version then
      redis.call('SET', key, '**' .. rejections, 'PX', ARGV[2])
    end
    rejectedUntil = math.max(rejectedUntil, tonumber(rejections) or 0)
  end
end
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return math.max(rejectedUntil - nowMs, 0)
