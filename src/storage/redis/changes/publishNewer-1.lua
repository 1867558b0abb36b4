--[[
  Publishes a committed change again, or for the first time where that was not possible when it was made. Any replica may do so, any number
  of times and in any order: a newer version is never replaced, and a deleted key stays deleted. A mark stays as well: it makes every
  replica read the record store until it expires, and a change that it announces may still be made.

  KEYS[1]  version: shared version of the key's record, then the end of its cached rejections, if there is one (see decideRequests)

  ARGV[1]  the committed version, "<key version>.<plan version>", or "-" once the key is deleted
  ARGV[2]  milliseconds that a version or a tombstone is kept

  Reply: 1 when it was written, else 0
]]
local known, rejections = string.match(redis.call('GET', KEYS[1]) or '', '^(%S*)( ?%d*)$')
if known == '-' then
  -- A tombstone that lost its expiry would keep the key away for good.
  redis.call('PEXPIRE', KEYS[1], ARGV[2], 'NX')
  return 0
end
if ARGV[1] ~= '-' then
  if known == '*' or known == '**' then return 0 end
  local key, plan = string.match(ARGV[1], '^(%d+)%.(%d+)$')
  local knownKey, knownPlan = string.match(known or '', '^(%d+)%.(%d+)$')
  if knownKey then
    if tonumber(knownKey) > tonumber(key) then return 0 end
    if knownKey == key and tonumber(knownPlan) >= tonumber(plan) then return 0 end
  end
end
redis.call('SET', KEYS[1], ARGV[1] .. (ARGV[1] == '-' and '' or rejections or ''), 'PX', ARGV[2])
return 1
