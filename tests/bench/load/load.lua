--[[
  The load, for wrk. Arguments: file of keys ("<secret> <id> <limit>" on each line), method, path, kind of body (none, length,
  chunked), percent of requests with "Connection: close", mean pause before a request in milliseconds (0 = none),
  "asks" for the calls of another gateway about these requests.
  wrk's own lines come as soon as they are written, and at the end there is one line of JSON after "BENCH ".
]]
local requests, closing, close_percent, pause_ms, asks = {}, {}, 0, 0, false
local BODY = string.rep('0123456789', 1024)
local PATHS = 10

local function chunked(body)
  local chunks = {}
  for start = 1, #body, 4096 do
    local chunk = string.sub(body, start, start + 4095)
    chunks[#chunks + 1] = string.format('%x\r\n%s\r\n', #chunk, chunk)
  end
  return table.concat(chunks) .. '0\r\n\r\n'
end

local function build(secret, method, path, kind, closes)
  local lines = {
    method .. ' ' .. (asks and '/authorize/original' or path) .. ' HTTP/1.1',
    'Host: ' .. wrk.host .. ':' .. wrk.port,
    'User-Agent: bench/1.0',
    'Accept: */*',
    'Authorization: Bearer ' .. secret,
  }
  if asks then
    lines[#lines + 1] = 'X-Original-Method: ' .. method
    lines[#lines + 1] = 'X-Original-URI: ' .. path
    lines[#lines + 1] = 'X-Forwarded-For: 127.0.0.1'
  end
  local body = ''
  if kind ~= 'none' then lines[#lines + 1] = 'Content-Type: application/octet-stream' end
  if kind == 'length' then
    body = BODY
    lines[#lines + 1] = 'Content-Length: ' .. #BODY
  elseif kind == 'chunked' then
    body = chunked(BODY)
    lines[#lines + 1] = 'Transfer-Encoding: chunked'
  end
  if closes then lines[#lines + 1] = 'Connection: close' end
  return table.concat(lines, '\r\n') .. '\r\n\r\n' .. body
end

function init(args)
  local file, method, path, kind = args[1], args[2], args[3], args[4]
  close_percent, pause_ms, asks = tonumber(args[5]), tonumber(args[6]), args[7] == 'asks'
  math.randomseed(os.time())
  local index = 0
  for line in io.lines(file) do
    local secret = string.match(line, '^(%S+)')
    local own_path = kind == 'none' and path == '/v1/items' and path .. '/' .. index % PATHS or path
    index = index + 1
    requests[index] = build(secret, method, own_path, kind, false)
    if close_percent > 0 then closing[index] = build(secret, method, own_path, kind, true) end
  end
  -- wrk calls `delay` for every request of a script that has one.
  if pause_ms > 0 then
    delay = function() return math.floor(-math.log(1 - math.random()) * pause_ms + 0.5) end
  end
  -- The same stdout that wrk writes to.
  io.stdout:setvbuf('line')
end

function request()
  local index = math.random(#requests)
  if close_percent > 0 and math.random(100) <= close_percent then return closing[index] end
  return requests[index]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'BENCH {"requests":%d,"durationUs":%d,"limited":%d,"broken":%d,"p50Us":%d,"p99Us":%d,"p999Us":%d}\n',
    summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end
