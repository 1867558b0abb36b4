--[[
  Marks keys that are about to be written to, so that a flusher looks at them soon.

  The marks are a sorted set of keys. The score says when to look, in milliseconds since 1970, and its fraction what is known: .0 the key
  was marked; .25 a flusher has it (a lease); .5 it was looked at after its last mark, and is looked at once more before it is
  taken off. So a mark stays for as long as it takes from one look to the next at least, and a write that follows it
  within that time is found.

  KEYS[1]  marks

  ARGV[1]  milliseconds until a newly marked key is looked at
  ARGV[2…] keys

  Answer: 1
]]
local time = redis.call('TIME')
local dueMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])
local due = string.format('%.0f', dueMs)
for index = 2, #ARGV do
  local score = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[index]) or '')
  -- One that is due soon stays, or a busy key would be put off for ever.
  if not score or score > dueMs or score % 1 ~= 0 then redis.call('ZADD', KEYS[1], due, ARGV[index]) end
end
return 1
