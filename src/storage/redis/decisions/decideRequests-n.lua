--[[
  Decides requests, one after the other: is the replica's copy of the key's record current, and is there room in every window that the
  request meets? One call, one round trip, atomic over all replicas, by the server's clock. A call may contain several decisions; on a
  cluster only one, because their keys lie in different slots. A call that fails does so at its first write, so an error means that
  nothing was counted.

  KEYS of each decision, in the order of the decisions:
    version  shared version of the key's record; "*" or "**" while a change is under way, "-" once deleted. After a blank, an instant in
             milliseconds since 1970 may follow: until then replicas may repeat a rejection under this version, and a change waits
    window   units counted in the open window, for each limit that applies. A limit for each customer has two: the window of the
             request's customer, and the one that all customers beyond the bound (10000 open windows) share
    index    only where there is a limit for each customer: sorted set of the open windows of customers by their end

  ARGV[i] has the i-th decision, as words separated by blanks: one text costs the client and the server less than many
    deadline by the server's clock, in milliseconds since 1970: from then on the replica no longer waits for the reply
    version of the replica's copy
    "!<ms>" only when the copy was read for this very request (fresh): milliseconds that an installed version is kept
    then one of
      "-"                        no limit applies: one key
      <limit> <token>            one enforced limit and a cost of 1: two keys
      "="<cost> <limit>...       enforced limits of the key only, and a cost above 0: a key for each, whose name ends in the token
      "*" or "**" <cost> <limits>  else, "**" where a limit is for each customer; <limits> is a JSON list with three values for each:
                                 0 (enforced) or 1 (shadow), plus 2 for a limit for each customer
                                 the limit, or [limit, until, base]: from the instant `until` on, `base` applies
                                 token of the period: milliseconds ("3600000") or calendar months in UTC ("1mo")

  Reply: one text, because parsing an array of numbers is the client's largest cost. It holds the server's time in
  milliseconds since 1970, and for each decision, separated by blanks,
    0         stale: reload the copy and call again
    1 <w>     allowed, and counted in every window that had room
    2 <w>     limited: an enforced window had no room; nothing was counted
    3         no limit applies
    4         too late: nothing was done
    5         the index of the customers' windows has another type: nothing was counted
  where <w> is a number whose bit i is set when the i-th window had no room, bit 16 + i when it is the shared one of all customers
  beyond the bound, and then for each window: units counted in it, and its end, -1 when it is not open
]]
local call, pcall, match, format = redis.call, redis.pcall, string.match, string.format

local time = call('TIME')
local nowMs = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- Creates the function that makes any decision. Each call of a script creates its functions again, and these cost more than the
-- decisions of most calls: they are created only when a decision needs them.
local function makeDecide()
  local STALE, ALLOWED, LIMITED, UNLIMITED, TOO_LATE, UNREADABLE = '0', '1', '2', '3', '4', '5'
  local MAX_CUSTOMER_WINDOWS = 10000
  local DAY_MS = 86400000
  -- The longest period of limiter/period.ts.
  local LONGEST_WINDOW_MS = 366 * DAY_MS
  local TOMBSTONE = '-'
  -- How long RejectionCache repeats a rejection.
  local REJECTION_CACHED_MS = 1000
  -- Least time between two notes about a key that is limited all the time.
  local REJECTION_NOTED_MS = 100

  -- The end of a window of calendar months. Its functions are created only when needed, as above.
  local calendarEndMs
  local function makeCalendarEnd()
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

    -- The time of day is kept, the day clamped to the month's last.
    return function(openedAtMs, months)
      local days = math.floor(openedAtMs / DAY_MS)
      local year, month, day = civilFromDays(days)
      local monthIndex = year * 12 + month - 1 + months
      year, month = math.floor(monthIndex / 12), monthIndex % 12 + 1
      local nextMonth = monthIndex + 1
      local firstDay = daysFromCivil(year, month, 1)
      local daysInMonth = daysFromCivil(math.floor(nextMonth / 12), nextMonth % 12 + 1, 1) - firstDay
      return (firstDay + math.min(day, daysInMonth) - 1) * DAY_MS + openedAtMs - days * DAY_MS
    end
  end

  -- The same instant as windowEndMs of limiter/period.ts.
  local function windowEndMs(openedAtMs, token)
    local lengthMs = tonumber(token)
    if lengthMs then return openedAtMs + lengthMs end
    calendarEndMs = calendarEndMs or makeCalendarEnd()
    return calendarEndMs(openedAtMs, tonumber(match(token, '^(%d+)mo$')))
  end

  -- Lua writes large numbers with an exponent.
  local function decimal(number) return format('%d', number) end

  -- Adds to an open window. A value that is a number for Lua, but not for INCRBY, is no count: the count begins again.
  local function addTo(windowKey, cost, resetAtMs)
    local count = pcall('INCRBY', windowKey, cost)
    if type(count) == 'number' then return count end
    call('SET', windowKey, cost, 'PXAT', decimal(resetAtMs))
    return tonumber(cost)
  end

  -- When a window with a count ends. An expiry that is missing, or that no window can have, is set again: the count would never be cleared.
  local function endOf(windowKey, token)
    local resetAtMs = call('PEXPIRETIME', windowKey)
    if resetAtMs >= 0 and resetAtMs <= nowMs + LONGEST_WINDOW_MS then return resetAtMs end
    resetAtMs = windowEndMs(nowMs, token)
    call('PEXPIREAT', windowKey, decimal(resetAtMs))
    return resetAtMs
  end

  -- Versions are "<key version>.<plan version>", and each change raises one of them.
  local function isNewer(version, known)
    local key, plan = match(version, '^(%d+)%.(%d+)$')
    local knownKey, knownPlan = match(known, '^(%d+)%.(%d+)$')
    if not key or not knownKey then return false end
    if key ~= knownKey then return tonumber(key) > tonumber(knownKey) end
    return tonumber(plan) > tonumber(knownPlan)
  end

  local function isCurrent(versionKey, shared, version, isFresh, keptMs)
    if shared == version then return true end
    local known = shared and match(shared, '^%S+')
    -- The key is deleted, even if the copy was read for this request: nothing may open a window for it again.
    if known == TOMBSTONE then
      -- One that lost its expiry would keep the key away for good.
      if isFresh then call('PEXPIRE', versionKey, keptMs, 'NX') end
      return false
    end
    if known == version then return true end
    -- A fresh copy was read from the record store after the request arrived: it decides in any case. It is installed only
    -- if there is no version, or an older one, so that it can't undo a mark or a newer version.
    if isFresh and (not known or isNewer(version, known)) then call('SET', versionKey, version, 'PX', keptMs) end
    return isFresh
  end

  -- Notes until when replicas may repeat this rejection without a call: a change of the record waits until then. A rejection under a
  -- fresh copy is not noted, because no replica caches it.
  local function noteRejection(versionKey, shared, version)
    local notedUntilMs = tonumber(match(shared, ' (%d+)$') or '0')
    local untilMs = nowMs + REJECTION_CACHED_MS
    -- A note further ahead is from before the server's clock went back: no rejection is repeated for as long.
    if notedUntilMs >= untilMs and notedUntilMs <= untilMs + REJECTION_NOTED_MS then return end
    -- A server that is out of memory rejects this write, and every change as well.
    pcall('SET', versionKey, version .. ' ' .. decimal(untilMs + REJECTION_NOTED_MS), 'KEEPTTL')
  end

  local function decidePlain(windowKey, value, limit, token)
    local count = tonumber(value)
    local resetAtMs = count and endOf(windowKey, token) or 0
    if resetAtMs > nowMs then
      if count >= limit then return true, format('%s 1 %d %d', LIMITED, count, resetAtMs) end
      return false, format('%s 0 %d %d', ALLOWED, addTo(windowKey, '1', resetAtMs), resetAtMs)
    end
    resetAtMs = windowEndMs(nowMs, token)
    call('SET', windowKey, '1', 'PXAT', decimal(resetAtMs))
    return false, format('%s 0 1 %d', ALLOWED, resetAtMs)
  end

  -- Decides under any limits. Its functions are created only when needed, as above.
  local decideWindows
  local function makeDecideWindows()
    -- Whether a customer without an open window is counted in the window that all customers beyond the bound share; nil if the index has
    -- another type. That must not be an error: earlier decisions of the call may have been counted.
    local function isBeyondBound(indexKey, opening)
      if opening == 0 then pcall('ZREMRANGEBYSCORE', indexKey, '-inf', decimal(nowMs)) end
      local open = pcall('ZCARD', indexKey)
      if type(open) ~= 'number' then return nil end
      return open + opening >= MAX_CUSTOMER_WINDOWS
    end

    local function openWindow(windowKey, token, cost, indexKey)
      local resetAtMs = windowEndMs(nowMs, token)
      call('SET', windowKey, cost, 'PXAT', decimal(resetAtMs))
      if indexKey then
        call('ZADD', indexKey, decimal(resetAtMs), match(windowKey, '}:window:(.*)$'))
        if call('PEXPIRETIME', indexKey) < resetAtMs then call('PEXPIREAT', indexKey, decimal(resetAtMs)) end
      end
      return resetAtMs
    end

    -- The lists are indexed by limit: a table for each limit would cost more than the rest of the decision.
    return function(k, costWord, limits, isForCustomers, version, isFresh, keptMs, isLate)
      local cost, size, indexKey = tonumber(costWord), #limits / 3, nil
      local nextKey = k + 1 + size
      if isForCustomers then
        for i = 1, size do
          if limits[3 * i - 2] >= 2 then nextKey = nextKey + 1 end
        end
        indexKey, nextKey = KEYS[nextKey], nextKey + 1
      end
      if isLate then return TOO_LATE, nextKey end
      local values = call('MGET', unpack(KEYS, k, isForCustomers and nextKey - 2 or nextKey - 1))
      if not isCurrent(KEYS[k], values[1], version, isFresh, keptMs) then return STALE, nextKey end

      -- What each window holds, and whether it has room.
      local flags, bit, isLimited, opening = 0, 1, false, 0
      local windowKeys, counts, ends, isFull, isOwn, at = {}, {}, {}, {}, {}, k
      for i = 1, size do
        local kind, limit = limits[3 * i - 2], limits[3 * i - 1]
        at = at + 1
        local windowKey, count = KEYS[at], tonumber(values[at - k + 1])
        if type(limit) == 'table' then limit = nowMs < limit[2] and limit[1] or limit[3] end
        if kind >= 2 then
          at = at + 1
          local isOther = windowKey == KEYS[at]
          if not count and not isOther then
            isOther = isBeyondBound(indexKey, opening)
            if isOther == nil then return UNREADABLE, nextKey end
            opening = opening + 1
          end
          if isOther then
            windowKey, count = KEYS[at], tonumber(values[at - k + 1])
            flags = flags + bit * 65536
          else
            isOwn[i] = true
          end
        end
        local resetAtMs = count and endOf(windowKey, limits[3 * i]) or -1
        if resetAtMs <= nowMs then count, resetAtMs = 0, -1 end
        if cost > 0 and count + cost > limit then
          isFull[i] = true
          flags = flags + bit
          isLimited = isLimited or kind % 2 == 0
        end
        windowKeys[i], counts[i], ends[i], bit = windowKey, count, resetAtMs, bit * 2
      end

      if not isLimited and cost > 0 then
        for i = 1, size do
          if not isFull[i] then
            if ends[i] >= 0 then
              counts[i] = addTo(windowKeys[i], costWord, ends[i])
            else
              counts[i] = cost
              ends[i] = openWindow(windowKeys[i], limits[3 * i], costWord, isOwn[i] and indexKey)
            end
          end
        end
      elseif isLimited and not isFresh then
        noteRejection(KEYS[k], values[1], version)
      end

      local reply = { isLimited and LIMITED or ALLOWED, decimal(flags) }
      for i = 1, size do reply[i + 2] = format('%d %d', counts[i], ends[i]) end
      return table.concat(reply, ' '), nextKey
    end
  end

  -- The reply for one decision, and where the KEYS of the next begin.
  return function(k, words)
    local untilMs, version, at = match(words, '^(%d+) (%S+) ()')
    local keptMs, afterKept = match(words, '^!(%d+) ()', at)
    local isFresh = keptMs ~= nil
    local limitWord, token, rest = match(words, '^(%S+) ?(%S*) ?()', afterKept or at)
    -- Past the deadline the replica has decided alone: a call that waited in a socket while the server was paused must not count.
    local isLate = nowMs >= tonumber(untilMs)
    local versionKey = KEYS[k]

    local limit = tonumber(limitWord)
    if limit then
      if isLate then return TOO_LATE, k + 2 end
      local values = call('MGET', versionKey, KEYS[k + 1])
      if not isCurrent(versionKey, values[1], version, isFresh, keptMs) then return STALE, k + 2 end
      local isLimited, reply = decidePlain(KEYS[k + 1], values[2], limit, token)
      if isLimited and not isFresh then noteRejection(versionKey, values[1], version) end
      return reply, k + 2
    end
    if limitWord == '-' then
      if isLate then return TOO_LATE, k + 1 end
      -- Unlike GET, it takes an entry of another type for none, as for the other decisions.
      local shared = call('MGET', versionKey)[1]
      if not isCurrent(versionKey, shared, version, isFresh, keptMs) then return STALE, k + 1 end
      return UNLIMITED, k + 1
    end

    decideWindows = decideWindows or makeDecideWindows()
    local costWord, limits = match(limitWord, '^=(%d+)$'), {}
    if not costWord then
      limits = cjson.decode(string.sub(words, rest))
      return decideWindows(k, token, limits, limitWord == '**', version, isFresh, keptMs, isLate)
    end
    for word in string.gmatch(string.sub(words, afterKept or at), ' (%d+)') do
      local i = #limits
      limits[i + 1], limits[i + 2], limits[i + 3] = 0, tonumber(word), match(KEYS[k + 1 + i / 3], '[^:]*$')
    end
    return decideWindows(k, costWord, limits, false, version, isFresh, keptMs, isLate)
  end
end

local decide
local replies, k = { format('%d', nowMs) }, 1
for i = 1, #ARGV do
  -- Makes most decisions: enforced limits of the key, a current copy, and room in every window. Nothing is written before all of
  -- this is known, so `decide` can make any other decision from the start.
  local words, reply, nextKey = ARGV[i], nil, nil
  local untilMs, version, equals, number, at = match(words, '^(%d+) (%S+) (=?)(%d+) ()')
  if not untilMs or nowMs >= tonumber(untilMs) then
    -- Late, or of another form.
  elseif equals == '' then
    nextKey = k + 2
    local versionKey, windowKey = KEYS[k], KEYS[k + 1]
    local values = call('MGET', versionKey, windowKey)
    local shared, value = values[1], values[2]
    local count = tonumber(value or '0')
    if (shared == version or shared and match(shared, '^%S+') == version) and count and count < tonumber(number) then
      local lengthMs = not value and tonumber(string.sub(words, at))
      if value then
        local resetAtMs = call('PEXPIRETIME', windowKey)
        -- INCR fails on a value that is no count.
        local counted = resetAtMs > nowMs and pcall('INCR', windowKey)
        if type(counted) == 'number' then reply = format('1 0 %d %d', counted, resetAtMs) end
      elseif lengthMs then
        local resetAt = format('%d', nowMs + lengthMs)
        call('SET', windowKey, '1', 'PXAT', resetAt)
        reply = '1 0 1 ' .. resetAt
      end
    end
  else
    local limits = {}
    for word in string.gmatch(string.sub(words, at), '%d+') do limits[#limits + 1] = tonumber(word) end
    local cost, size, room, ends = tonumber(number), #limits, 0, {}
    nextKey = k + 1 + size
    local values = call('MGET', unpack(KEYS, k, k + size))
    local shared = values[1]
    if shared == version or shared and match(shared, '^%S+') == version then
      for j = 1, size do
        local value, windowKey = values[j + 1], KEYS[k + j]
        local count = tonumber(value or '0')
        local lengthMs = not value and tonumber(match(windowKey, '%d+$'))
        ends[j] = value and call('PEXPIRETIME', windowKey) or lengthMs and nowMs + lengthMs or 0
        if count and count + cost <= limits[j] and ends[j] > nowMs then room = room + 1 end
      end
    end
    if room == size then
      reply = '1 0'
      for j = 1, size do
        local windowKey = KEYS[k + j]
        local counted = values[j + 1] and pcall('INCRBY', windowKey, number)
        if type(counted) ~= 'number' then
          call('SET', windowKey, number, 'PXAT', format('%d', ends[j]))
          counted = cost
        end
        reply = format('%s %d %d', reply, counted, ends[j])
      end
    end
  end
  if reply then
    replies[i + 1], k = reply, nextKey
  else
    decide = decide or makeDecide()
    replies[i + 1], k = decide(k, words)
  end
end
return table.concat(replies, ' ')
