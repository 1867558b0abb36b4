--[[
  Adds units to the windows in which a request was counted, or subtracts them, if these windows are still open. The count may then
  exceed the limit: the request was made. Does nothing for a deleted key.

  KEYS[1]    version: shared version of the key's record, "-" once deleted
  KEYS[2..]  window: units counted in it

  ARGV[1]    units to add, -999999999999999 to 999999999999999
  ARGV[i]    when the window of KEYS[i] ends, in milliseconds since 1970: a window with another end is a later one

  Reply: 0
]]
if string.match(redis.call('GET', KEYS[1]) or '', '^%S*') == '-' then return 0 end
for i = 2, #KEYS do
  if redis.call('PEXPIRETIME', KEYS[i]) == tonumber(ARGV[i]) then
    redis.call('INCRBY', KEYS[i], ARGV[1])
  end
end
return 0
