--[[
  Adds what one writer recorded to a key's live counts, once, however often the same write is sent.

  The live counts are a hash: "id" (the id that the counts will have as a batch), "#e" and "#c" (names in either list, without
  __other__), "t" (totals), "h<hours since 1970>", "e<endpoint>", "c<customer>". Each of the last four holds
  "<requests> <successful> <forwarded> <microseconds>".

  KEYS[1]  live counts
  KEYS[2]  the batch that waits, another hash of this kind
  KEYS[3]  writes: hash of writer to "<sequence of its last write> <seconds since 1970>", and "#id", the last id given
  KEYS[4]  version of the key's record; "-" once the key is deleted

  ARGV[1]  writer: one run of a replica
  ARGV[2]  sequence of the write: grows from one write of the writer to the next
  ARGV[3]  most endpoints with a name of their own
  ARGV[4]  most customers with a name of their own
  ARGV[5…] field, what to add to it, field, what to add to it, …; each field once

  Answer: 1 written, now or earlier; 0 dropped, because the key is deleted
]]
local DAY_S = 86400
local MANY_WRITERS = 64
local OTHER = '__other__'

if redis.call('GET', KEYS[4]) == '-' then return 0 end

local writer, sequence = ARGV[1], tonumber(ARGV[2])
local last = redis.call('HGET', KEYS[3], writer)
if last and tonumber(string.match(last, '^%d+')) >= sequence then return 1 end

-- Large numbers would reach Redis in exponent form.
local function decimal(number) return string.format('%.0f', number) end

local time = redis.call('TIME')
local nowS = tonumber(time[1])

local asked = { 'id', '#e', '#c' }
for index = 5, #ARGV, 2 do asked[#asked + 1] = ARGV[index] end
local known = redis.call('HMGET', KEYS[1], unpack(asked))

local id = known[1]
if not id then
  -- Microseconds, so that ids grow even when these keys were lost; above the ids given before, so that they grow even when the clock went back.
  local given = redis.call('HGET', KEYS[3], '#id') or redis.call('HGET', KEYS[2], 'id') or '0'
  id = decimal(math.max(nowS * 1000000 + tonumber(time[2]), tonumber(given) + 1))
  redis.call('HSET', KEYS[3], '#id', id)
end

local room = { e = tonumber(ARGV[3]) - (tonumber(known[2]) or 0), c = tonumber(ARGV[4]) - (tonumber(known[3]) or 0) }
local sums = {}

local function add(field, stored, added)
  local sum = sums[field]
  if not sum then
    sum = { 0, 0, 0, 0 }
    sums[field] = sum
    local position = 1
    for number in string.gmatch(stored or '', '%d+') do
      sum[position] = tonumber(number)
      position = position + 1
    end
  end
  local position = 1
  for number in string.gmatch(added, '%d+') do
    sum[position] = sum[position] + tonumber(number)
    position = position + 1
  end
end

for index = 5, #ARGV, 2 do
  local field, stored = ARGV[index], known[(index - 5) / 2 + 4]
  local list = string.sub(field, 1, 1)
  if not stored and room[list] and string.sub(field, 2) ~= OTHER then
    if room[list] > 0 then
      room[list] = room[list] - 1
    else
      field = list .. OTHER
      stored = redis.call('HGET', KEYS[1], field)
    end
  end
  add(field, stored, ARGV[index + 1])
end

local set = { 'id', id, '#e', decimal(tonumber(ARGV[3]) - room.e), '#c', decimal(tonumber(ARGV[4]) - room.c) }
for field, sum in pairs(sums) do
  set[#set + 1] = field
  set[#set + 1] = decimal(sum[1]) .. ' ' .. decimal(sum[2]) .. ' ' .. decimal(sum[3]) .. ' ' .. decimal(sum[4])
end
redis.call('HSET', KEYS[1], unpack(set))

local isNewWriter = redis.call('HSET', KEYS[3], writer, ARGV[2] .. ' ' .. time[1]) == 1
if isNewWriter and redis.call('HLEN', KEYS[3]) > MANY_WRITERS then
  -- Every start of a replica is a new writer: those that have been silent for a day will not repeat a write.
  local entries = redis.call('HGETALL', KEYS[3])
  for index = 1, #entries, 2 do
    local seconds = string.match(entries[index + 1], ' (%d+)$')
    if seconds and nowS - tonumber(seconds) > DAY_S then redis.call('HDEL', KEYS[3], entries[index]) end
  end
end
redis.call('EXPIRE', KEYS[3], DAY_S)
return 1
