--[[
  Ends an announced change: the new version becomes the shared one. Only where nothing else happened since the
  announcement: another change that overlapped, or one that settled after our mark had lapsed, may have written the record
  after us. Then the mark stays for its full time, and every request reads the record store until it has lapsed.
  A deleted key stays deleted.

  KEYS[1]  version: shared version of the key's record

  ARGV[1]  the new version
  ARGV[2]  milliseconds that a version is kept
  ARGV[3]  milliseconds after which a mark lapses

  Answer: 1
]]
local shared = redis.call('GET', KEYS[1])
if shared == '-' or shared == ARGV[1] then return 1 end
if not shared or shared == '*' then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
else
  redis.call('SET', KEYS[1], '**', 'PX', ARGV[3])
end
return 1
