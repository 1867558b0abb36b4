--[[
  Takes lent keys back. One that was marked meanwhile has another score than the lease, and keeps it.

  KEYS[1]  marks, as markUsage has them

  ARGV[1]  lease of the keys
  ARGV[2]  milliseconds until the last look at a key
  ARGV[3]  milliseconds until a key is tried again
  ARGV[4…] key, what to do with it ("look": a last time, "forget", "retry"), key, …

  Answer: 1
]]
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
for index = 4, #ARGV, 2 do
  local key, verdict = ARGV[index], ARGV[index + 1]
  if tonumber(redis.call('ZSCORE', KEYS[1], key) or '') == tonumber(ARGV[1]) then
    if verdict == 'forget' then
      redis.call('ZREM', KEYS[1], key)
    elseif verdict == 'look' then
      redis.call('ZADD', KEYS[1], string.format('%.1f', nowMs + tonumber(ARGV[2]) + 0.5), key)
    else
      redis.call('ZADD', KEYS[1], string.format('%.0f', nowMs + tonumber(ARGV[3])), key)
    end
  end
end
return 1
