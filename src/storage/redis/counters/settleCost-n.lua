--[[
  Adds units to the windows in which a request was counted, or subtracts them, if these windows are still open. The count may then
  exceed the limit: the request was made. Does nothing for a deleted key.

  KEYS[1]    version: shared version of the key's record, "-" once deleted
  KEYS[2..]  window: units counted in it

  ARGV[1]    units to add, -999999999999999 to 999999999999999
  ARGV[i]    when the window of KEYS[i] ends, in milliseconds since 1970: a window that ends a second later is another one. A slot that
             moves to another server of a cluster takes milliseconds, and its windows end that much later

  Reply: the time in milliseconds since 1970, and for each window the units counted in it; false if it is not open any more, or the key is deleted
]]
local call = redis.call
local time = call('TIME')
local reply = { tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) }
local isDeleted = string.match(call('GET', KEYS[1]) or '', '^%S*') == '-'
for i = 2, #KEYS do
  local isOpen = not isDeleted and math.abs(call('PEXPIRETIME', KEYS[i]) - tonumber(ARGV[i])) < 1000
  reply[i] = isOpen and call('INCRBY', KEYS[i], ARGV[1])
end
return reply
