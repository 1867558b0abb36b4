--[[
  Reads the slices of some keys from a shard's batch and live counts, both at one instant.

  KEYS[1]  live counts of a data set, as recordUsage has them
  KEYS[2]  its waiting batch

  ARGV     ids of the keys

  Reply: { elements of the batch, elements of the live counts }, each the id and then the texts of the keys' slices, or empty
]]
local find, sub = string.find, string.sub

local function elementsOf(list)
  local elements = redis.call('LRANGE', list, 0, -1)
  local found = { elements[1] }
  for index = 2, #elements do
    local text = elements[index]
    for each = 1, #ARGV do
      -- A slice begins with a line "k<key>", and no name has a line break.
      local from = find(text, '\nk' .. ARGV[each] .. '\t', 1, true)
      while from do
        local after = find(text, '\nk', from + 2, true)
        found[#found + 1] = sub(text, from, after and after - 1 or -1)
        from = after and find(text, '\nk' .. ARGV[each] .. '\t', after, true)
      end
    end
  end
  return found
end

return { elementsOf(KEYS[2]), elementsOf(KEYS[1]) }
