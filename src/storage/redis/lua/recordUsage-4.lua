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

local FOUR = '^(%d+) (%d+) (%d+) (%d+)$'
local match, format = string.match, string.format
local function sumOf(one, other)
  local a, b, c, d = match(one, FOUR)
  local e, f, g, h = match(other, FOUR)
  return format('%.0f %.0f %.0f %.0f', a + e, b + f, c + g, d + h)
end

local room = { e = tonumber(ARGV[3]) - (tonumber(known[2]) or 0), c = tonumber(ARGV[4]) - (tonumber(known[3]) or 0) }
local others = {}
local set = { 'id', id }
local position, size = 4, 2
for index = 5, #ARGV, 2 do
  local field, value, stored = ARGV[index], ARGV[index + 1], known[position]
  local list = string.sub(field, 1, 1)
  local isOther = room[list] and string.sub(field, 2) == OTHER
  if not stored and room[list] and not isOther then
    if room[list] > 0 then
      room[list] = room[list] - 1
    else
      isOther = true
    end
  end
  if isOther then
    others[list] = others[list] and sumOf(others[list], value) or value
  else
    set[size + 1] = field
    set[size + 2] = stored and sumOf(stored, value) or value
    size = size + 2
  end
  position = position + 1
end
for list, value in pairs(others) do
  local stored = redis.call('HGET', KEYS[1], list .. OTHER)
  set[size + 1] = list .. OTHER
  set[size + 2] = stored and sumOf(stored, value) or value
  size = size + 2
end
set[size + 1] = '#e'
set[size + 2] = decimal(tonumber(ARGV[3]) - room.e)
set[size + 3] = '#c'
set[size + 4] = decimal(tonumber(ARGV[4]) - room.c)
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
