--[[
  Decides requests, one after the other: is the replica's copy of the key's record current, and is there room in the key's window?
  One call, one round trip, atomic over all replicas. Time is the server's. A call may bring several decisions, each with the
  three KEYS and the one ARGV below; on a cluster only one, because their keys lie in different slots. What fails, fails at the first
  write, so that an error means that nothing was counted.

  KEYS[1]  version: shared version of the key's record; "*" or "**" while a change is under way, "-" once deleted
  KEYS[2]  window:  requests counted in the open window
  KEYS[3]  period:  token of the period that the open window has, same expiry as the window

  ARGV[1]  six words with a blank between each two: one text costs the client and the server less than six
           version of the replica's copy
           "1" when the copy was read for this very request (fresh), else "0"
           limit in requests, or "-" for no limit
           token of the period: milliseconds ("3600000") or calendar months in UTC ("1mo"); "-" for no limit
           milliseconds that an installed version is kept
           the server's time in milliseconds since 1970 from which on nobody waits for the answer any more

  Answer, one text with four numbers for each decision in the order of the KEYS, all separated by blanks: a reply of so many
  numbers would cost the client more than all else about it.
          0, 0, 0, nowMs                   stale: reload the copy and ask again
          1, remaining, resetAtMs, nowMs   admitted and counted
          2, 0, resetAtMs, nowMs           denied, not counted
          3, 0, 0, nowMs                   no limit applies
          4, 0, 0, nowMs                   too late: nothing was done
]]
local STALE, ADMITTED, DENIED, UNLIMITED, TOO_LATE = 0, 1, 2, 3, 4
local DAY_MS = 86400000

-- Days since 1970-01-01 of a date in the proleptic Gregorian calendar, and back. Years are counted from 1 March, so
-- that the leap day is the last of its year; an era has 400 years, 146097 days. Good for dates after the year 0.
local function daysFromCivil(year, month, day)
  if month <= 2 then year = year - 1 end
  local era = math.floor(year / 400)
  local yearOfEra = year - era * 400
  local monthFromMarch = (month + 9) % 12
  local dayOfYear = math.floor((153 * monthFromMarch + 2) / 5) + day - 1
  local dayOfEra = yearOfEra * 365 + math.floor(yearOfEra / 4) - math.floor(yearOfEra / 100) + dayOfYear
  return era * 146097 + dayOfEra - 719468
end

local function civilFromDays(days)
  local shifted = days + 719468
  local era = math.floor(shifted / 146097)
  local dayOfEra = shifted - era * 146097
  local yearOfEra = math.floor(
    (dayOfEra - math.floor(dayOfEra / 1460) + math.floor(dayOfEra / 36524) - math.floor(dayOfEra / 146096)) / 365)
  local dayOfYear = dayOfEra - (365 * yearOfEra + math.floor(yearOfEra / 4) - math.floor(yearOfEra / 100))
  local monthFromMarch = math.floor((5 * dayOfYear + 2) / 153)
  local day = dayOfYear - math.floor((153 * monthFromMarch + 2) / 5) + 1
  local month = (monthFromMarch + 2) % 12 + 1
  local year = era * 400 + yearOfEra
  if month <= 2 then year = year + 1 end
  return year, month, day
end

-- The same instant as windowEndMs of limiter/period.ts: the time of day is kept, the day clamped to the month's last.
local function windowEndMs(openedAtMs, token)
  local months = string.match(token, '^(%d+)mo$')
  if not months then return openedAtMs + tonumber(token) end
  local days = math.floor(openedAtMs / DAY_MS)
  local year, month, day = civilFromDays(days)
  local monthIndex = year * 12 + month - 1 + tonumber(months)
  year, month = math.floor(monthIndex / 12), monthIndex % 12 + 1
  local nextMonth = monthIndex + 1
  local firstDay = daysFromCivil(year, month, 1)
  local daysInMonth = daysFromCivil(math.floor(nextMonth / 12), nextMonth % 12 + 1, 1) - firstDay
  return (firstDay + math.min(day, daysInMonth) - 1) * DAY_MS + openedAtMs - days * DAY_MS
end

-- Large numbers would reach Redis in exponent form.
local function decimal(number) return string.format('%.0f', number) end

local time = redis.call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function decide(versionKey, windowKey, periodKey, words)
  local version, freshness, limitWord, token, keptMs, untilMs =
    string.match(words, '^(%S+) ([01]) (%S+) (%S+) (%d+) (%S+)$')
  local isFresh, limit = freshness == '1', tonumber(limitWord)
  -- The caller has decided without us meanwhile: a call that waited in a socket while the server stood still must not count.
  if nowMs >= tonumber(untilMs) then return TOO_LATE, 0, 0 end

  local values = redis.call('MGET', versionKey, windowKey, periodKey)
  local shared, period = values[1], values[3]
  -- Only what INCR takes is a count: anything else would fail this call after others of it were counted.
  local count = tonumber(string.match(values[2] or '', '^%-?[1-9]%d*$') or string.match(values[2] or '', '^0$'))

  if shared ~= version then
    -- A fresh copy comes from the record store after the request arrived: it decides whatever is stored here, but is
    -- installed only where nothing is, so that it can't undo a mark, a tombstone or a newer version.
    if not isFresh then return STALE, 0, 0 end
    if not shared then redis.call('SET', versionKey, version, 'PX', keptMs) end
  end
  if not limit then return UNLIMITED, 0, 0 end

  local resetAtMs
  if count and period == token then
    resetAtMs = redis.call('PEXPIRETIME', windowKey)
    if resetAtMs < 0 then
      -- The expiry is missing: without one the count would never be cleared.
      resetAtMs = windowEndMs(nowMs, token)
      redis.call('PEXPIREAT', windowKey, decimal(resetAtMs))
      redis.call('PEXPIREAT', periodKey, decimal(resetAtMs))
    end
  end

  if resetAtMs and resetAtMs > nowMs then
    if count >= limit then return DENIED, 0, resetAtMs end
    -- Clamped for a count that no request made, such as a negative one.
    local used = math.max(redis.call('INCR', windowKey), 1)
    return ADMITTED, limit - used, resetAtMs
  end

  resetAtMs = windowEndMs(nowMs, token)
  redis.call('SET', windowKey, '1', 'PXAT', decimal(resetAtMs))
  redis.call('SET', periodKey, token, 'PXAT', decimal(resetAtMs))
  return ADMITTED, limit - 1, resetAtMs
end

local answers = {}
for at = 0, #KEYS / 3 - 1 do
  local k = 3 * at
  local kind, remaining, resetAtMs = decide(KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], ARGV[at + 1])
  answers[at + 1] = string.format('%d %.0f %.0f %.0f', kind, remaining, resetAtMs, nowMs)
end
return table.concat(answers, ' ')
