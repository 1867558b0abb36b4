#!lua flags=allow-oom
--[[
  Locks a shard, unless a flusher has it. Runs on a server that is out of memory as well, unlike SET by itself: moving its usage to
  Postgres is what frees memory.

  KEYS[1]  the lock

  ARGV[1]  name that the flusher puts into the lock
  ARGV[2]  how long it lasts, in milliseconds

  Reply: OK, or nil where a flusher has it
]]
return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
