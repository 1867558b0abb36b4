--[[
  Lends the marked keys that are due to one flusher.

  KEYS[1]  marks, as markUsage has them

  ARGV[1]  most keys to lend
  ARGV[2]  milliseconds after which another flusher may have them, if this one does not give them back

  Answer: { lease, key, 1 when it is the last look at it else 0, milliseconds overdue, key, … }; the lease is the score they have
          until they are given back
]]
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local lease = string.format('%.2f', nowMs + tonumber(ARGV[2]) + 0.25)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', nowMs), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local answer = { lease }
for index = 1, #due, 2 do
  local score = tonumber(due[index + 1])
  redis.call('ZADD', KEYS[1], lease, due[index])
  answer[#answer + 1] = due[index]
  answer[#answer + 1] = score % 1 == 0.5 and 1 or 0
  answer[#answer + 1] = math.floor(nowMs - score)
end
return answer
