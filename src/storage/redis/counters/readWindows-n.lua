--[[
  Reads windows of one or more consumer keys without counting. On a cluster one at a time, because each consumer key has
  its own hash slot.

  KEYS, for each consumer key:
    index: sorted set of the open windows of customers by their end
    then four for each window:
      window: units counted in it
      granted: units granted in it beyond its limit
      window that all customers beyond the bound (10000 open windows) share; the first again for a limit of the key
      granted of that window

  ARGV  for each consumer key, the number of its windows

  Reply: the time in milliseconds since 1970, and for each window three numbers: units counted, units granted, and its end; the end
  is -1 when the window is not open, -2 when it lost its expiry (the next request sets it again)
]]
local MAX_CUSTOMER_WINDOWS = 10000
local call = redis.call
local time = call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local reply = { nowMs }

local function add(windowKey, grantedKey)
  local count = tonumber(call('GET', windowKey) or '')
  local endsAtMs = count and call('PEXPIRETIME', windowKey) or -1
  if endsAtMs == -1 and count then endsAtMs = -2 elseif endsAtMs >= 0 and endsAtMs <= nowMs then endsAtMs = -1 end
  if endsAtMs == -1 then count = 0 end
  local granted = endsAtMs == -1 and 0 or tonumber(call('GET', grantedKey) or '0')
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = count, granted, endsAtMs
end

local index = 1
for each = 1, #ARGV do
  local last = index + 4 * tonumber(ARGV[each])
  for k = index + 1, last, 4 do
    local isOfCustomer = KEYS[k] ~= KEYS[k + 2]
    if isOfCustomer and call('EXISTS', KEYS[k]) == 0
      and call('ZCOUNT', KEYS[index], '(' .. nowMs, '+inf') >= MAX_CUSTOMER_WINDOWS then
      add(KEYS[k + 2], KEYS[k + 3])
    else
      add(KEYS[k], KEYS[k + 1])
    end
  end
  index = last + 1
end
return reply
