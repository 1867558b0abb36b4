-- An API gateway in OpenResty's way: keys in memory, one exact shared decision in Redis for each request, then proxy_pass.
local redis = require 'nginx.redis'

local gateway = {}
local keys, sha, host, port, window_ms = {}, nil, nil, nil, nil

-- In the master, before the worker starts: `file` has a line for each key, with the secret, the id and the limit.
function gateway.configure(file, redis_host, redis_port, script_sha, window)
  for line in io.lines(file) do
    local secret, id, limit = string.match(line, '^(%S+) (%S+) (%d+)$')
    keys[secret] = { count = 'bench-nginx:' .. id, limit = limit }
  end
  host, port, sha, window_ms = redis_host, redis_port, script_sha, window
end

local function reject(status, text)
  ngx.status = status
  ngx.header['Content-Type'] = 'application/json'
  ngx.print(text)
  return ngx.exit(status)
end

local function decide(key)
  local connection = redis:new()
  connection:set_timeout(1000)
  local connected, failure = connection:connect(host, port)
  if not connected then return nil, failure end
  local reply, fault = connection:evalsha(sha, 1, key.count, key.limit, window_ms)
  if not reply then return nil, fault end
  connection:set_keepalive(60000, 256)
  return reply
end

function gateway.access()
  local secret = string.match(ngx.var.http_authorization or '', '^[Bb]earer (.+)$')
  local key = secret and keys[secret]
  if not key then return reject(401, '{"error":"a key is required"}') end
  local reply, failure = decide(key)
  if not reply then
    ngx.log(ngx.ERR, 'redis: ', failure)
    return reject(503, '{"error":"not available"}')
  end
  local seconds = math.ceil(reply[3] / 1000)
  ngx.header['X-RateLimit-Limit'] = key.limit
  ngx.header['X-RateLimit-Remaining'] = reply[2]
  ngx.header['X-RateLimit-Reset'] = math.floor(ngx.time() + seconds)
  if reply[1] == 0 then
    ngx.header['Retry-After'] = seconds
    return reject(429, '{"error":"rate limit exceeded"}')
  end
  ngx.req.set_header('x-api-key', secret)
end

return gateway
