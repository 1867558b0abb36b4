--[[
  Reads a key's window without counting.

  KEYS[1]  window: requests counted in the open window
  KEYS[2]  period: token of the period that the open window has

  ARGV[1]  token of the period asked for; a window of another period counts as none

  Answer: { used, resetAtMs, nowMs }; used in requests, resetAtMs -1 when no window is open,
          -2 when the open one lost its expiry (the next request sets it anew)
]]
local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local values = redis.call('MGET', KEYS[1], KEYS[2])
local count = tonumber(values[1] or '')
if not count or values[2] ~= ARGV[1] then return { 0, -1, nowMs } end

local resetAtMs = redis.call('PEXPIRETIME', KEYS[1])
if resetAtMs < 0 then return { count, -2, nowMs } end
if resetAtMs <= nowMs then return { 0, -1, nowMs } end
return { count, resetAtMs, nowMs }
