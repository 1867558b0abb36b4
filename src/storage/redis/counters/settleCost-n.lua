--[[
  Adds units to the windows in which a request was counted, or subtracts them, if these windows are still open. The count may then
  exceed the limit: the request was made. Does nothing for a deleted key.

  KEYS[1]    version: shared version of the key's record, "-" once deleted
  KEYS[2]    closed: when a reset last closed windows of the key, in milliseconds since 1970
  KEYS[3..]  window: units counted in it

  ARGV[1]    units to add, -999999999999999 to 999999999999999
  ARGV[2]    when the request was decided, in milliseconds since 1970
  ARGV[i]    when the window of KEYS[i] ended at the decision, in milliseconds since 1970

  Reply: the time in milliseconds since 1970, and for each window the units counted in it; false if it is not open any more, or the key is deleted
]]
local call = redis.call
local time = call('TIME')
local reply = { tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) }
local isDeleted = string.match(call('GET', KEYS[1]) or '', '^%S*') == '-'

-- Read before anything is written: INCRBY fails on an entry that is no count, and the call would be made again, with the other windows.
local values = call('MGET', unpack(KEYS, 3))
local function isCount(value) return value == '0' or string.match(value or '', '^%-?[1-9]%d*$') ~= nil end

-- A slot that moves to another server of a cluster takes milliseconds, and its windows end that much later. The next window under the same
-- name ends a second later at least. Only after a reset it may end sooner: then the same window is the one with the same end.
local wasReset = tonumber(call('GET', KEYS[2]) or '0') >= tonumber(ARGV[2])
local otherFromMs = wasReset and 1 or 1000
for i = 3, #KEYS do
  local isOpen = not isDeleted and isCount(values[i - 2])
    and math.abs(call('PEXPIRETIME', KEYS[i]) - tonumber(ARGV[i])) < otherFromMs
  reply[i - 1] = isOpen and call('INCRBY', KEYS[i], ARGV[1])
end
return reply
