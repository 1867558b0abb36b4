--[[
  Closes windows of a key: the next request that is counted in one opens a new one.

  KEYS[1]    version: shared version of the key's record
  KEYS[2]    index: sorted set of the open windows of customers by their end
  KEYS[3]    closed: when open windows of the key were last closed here, in milliseconds since 1970, for settleCost-n
  KEYS[4..]  names to remove: windows, and the units granted in them

  ARGV[1]    channel on which the change is published
  ARGV[2]    the message
  ARGV[3..]  members of the index that are removed

  Reply: milliseconds until no replica repeats a rejection from before this change
]]
local call = redis.call
local function part(list, from) return unpack(list, from) end
local function decimal(number) return string.format('%.0f', number) end

local time = call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local lastEndMs = 0
for i = 4, #KEYS do lastEndMs = math.max(lastEndMs, call('PEXPIRETIME', KEYS[i])) end
-- Before anything is written: Redis at its maxmemory runs a script whose first write frees memory.
call('UNLINK', part(KEYS, 4))
if lastEndMs > 0 then
  -- A second longer than the windows, because a cost may be settled in a window that ends that much later.
  local keptUntilMs = math.max(lastEndMs + 1000, call('PEXPIRETIME', KEYS[3]))
  call('SET', KEYS[3], decimal(nowMs), 'PXAT', decimal(keptUntilMs))
end
if #ARGV > 2 then call('ZREM', KEYS[2], part(ARGV, 3)) end
call('PUBLISH', ARGV[1], ARGV[2])
local noted = string.match(call('GET', KEYS[1]) or '', ' (%d+)$')
return math.max((tonumber(noted) or 0) - nowMs, 0)
