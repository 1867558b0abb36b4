--[[
  Marks the records of keys as being changed, before the record store is written. A second change that begins meanwhile is
  noted, because then neither can know which version is the last. A deleted key stays deleted.

  KEYS     version: shared version of a key's record, then the end of its cached rejections, if there is one (see decideRequests)

  ARGV[1]  milliseconds after which the marks expire

  Reply: 1
]]
for _, key in ipairs(KEYS) do
  local known, rejections = string.match(redis.call('GET', key) or '', '^(%S*)( ?%d*)$')
  if known ~= '-' then
    local mark = (known == '*' or known == '**') and '**' or '*'
    redis.call('SET', key, mark .. (rejections or ''), 'PX', ARGV[1])
  end
end
return 1
