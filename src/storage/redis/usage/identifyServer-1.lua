--[[
  Names the data set of the server that holds a key: another process (restarted, perhaps from older files) or another replication
  history (a promoted replica) is another data set.

  KEYS[1]  any key

  Reply: the name of the data set
]]
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
return string.sub(run or '', 1, 16) .. '-' .. string.sub(history or '', 1, 16)
