--[[
  Adds units to a window outside a decision: units that a replica allowed by itself while Redis was unavailable (the count may then
  exceed the limit), or, as a negative number, units that an administrator grants. Opens a window if none is open. Does nothing for a
  deleted key.

  KEYS[1]  version: shared version of the key's record, "-" once deleted
  KEYS[2]  window: units counted in it
  KEYS[3]  granted: units granted in it beyond its limit
  KEYS[4]  window that all customers beyond the bound (10000 open windows) share; KEYS[2] again for a limit of the key
  KEYS[5]  granted of that window
  KEYS[6]  index: sorted set of the open windows of customers by their end
  KEYS[7]  operation: set of the windows that the operation has added to

  ARGV[1]  units to add, -999999999999999 to 999999999999999
  ARGV[2]  units granted by this call, 0 for none
  ARGV[3]  when a window that opens now ends, in milliseconds since 1970
  ARGV[4]  channel on which the change is published and
  ARGV[5]  the message; both empty for none
  ARGV[6]  milliseconds for which the operation is remembered: a repeated call adds nothing

  Reply: milliseconds until no replica repeats a rejection from before this change
]]
local MAX_CUSTOMER_WINDOWS, MOST = 10000, 999999999999999
local call = redis.call
local function decimal(number) return string.format('%.0f', number) end
-- Unlike GET, it takes an entry of another type for none, as for a decision.
local function countIn(key) return tonumber(call('MGET', key)[1] or '') end

local shared = call('GET', KEYS[1]) or ''
if string.match(shared, '^%S*') == '-' then return 0 end
-- An index of another type is an error, which must come before the operation is remembered.
if KEYS[4] ~= KEYS[2] then call('ZCARD', KEYS[6]) end
if call('SADD', KEYS[7], KEYS[2]) == 0 then return 0 end
call('PEXPIRE', KEYS[7], ARGV[6])
local time = call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local windowKey, grantedKey = KEYS[2], KEYS[3]
local count, isNewCustomer = countIn(windowKey), false
if not count and KEYS[4] ~= KEYS[2] then
  call('ZREMRANGEBYSCORE', KEYS[6], '-inf', nowMs)
  isNewCustomer = call('ZCARD', KEYS[6]) < MAX_CUSTOMER_WINDOWS
  if not isNewCustomer then
    windowKey, grantedKey = KEYS[4], KEYS[5]
    count = countIn(windowKey)
  end
end

local endsAtMs = count and call('PEXPIRETIME', windowKey) or -1
if endsAtMs < 0 then endsAtMs = tonumber(ARGV[3]) end
local sum = math.min(math.max((count or 0) + tonumber(ARGV[1]), -MOST), MOST)
call('SET', windowKey, decimal(sum), 'PXAT', decimal(endsAtMs))
if isNewCustomer then
  call('ZADD', KEYS[6], decimal(endsAtMs), string.match(windowKey, '}:window:(.*)$'))
  if call('PEXPIRETIME', KEYS[6]) < endsAtMs then call('PEXPIREAT', KEYS[6], decimal(endsAtMs)) end
end
if ARGV[2] ~= '0' then
  local granted = math.min((countIn(grantedKey) or 0) + tonumber(ARGV[2]), MOST)
  call('SET', grantedKey, decimal(granted), 'PXAT', decimal(endsAtMs))
end
if ARGV[4] ~= '' then call('PUBLISH', ARGV[4], ARGV[5]) end
return math.max((tonumber(string.match(shared, ' (%d+)$') or '0')) - nowMs, 0)
