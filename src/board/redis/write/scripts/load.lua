-- Posts jobs of another board on the board or in the trash, in their former state. A claim counts no attempt.
-- Keys       `listings`, `trash`, `sequence`, `fences`; of each job: `owned`, `modified`, `sidecar`
-- Arguments  `channel`, `time`, `now`, `life`, `owner` ("" to claim none); of each job: `field`; `head` and `tail`, its
--            posting around its number; `former`, its former number, and `as_stored`, the bytes of that; `side`, its
--            sidecar; flag: `is_trashed`
-- Replies    for each job: ok (number, fence or ""), exists, failed
-- A job keeps its number if no greater one was given, and in the trash in any case.
require_posting_rights()
require_rights({ "HSET", "HEXISTS" }, trash, "field", "value")
require_rights({ "GET" }, sequence)
require_rights({ "SET" }, sidecar, "value")

-- Returns the number that a job is to have; nothing and an error, if no more can be given out.
local function next_number()
  local kept = tonumber(former)
  if not kept then return count_up(sequence, 1) end
  local last = redis.pcall("GET", sequence)
  last = type(last) == "string" and tonumber(last) or 0
  if kept > last then return count_up(sequence, kept - last) end
  if is_trashed == "1" then return kept end
  return count_up(sequence, 1)
end

local numbers, count = {}, 0
for job = 1, jobs do
  turn_to(job)
  local is_there = redis.call("HEXISTS", listings, field) == 1 or redis.call("HEXISTS", trash, field) == 1
  if not is_there and not numbers[field] then
    local number, problem = next_number()
    if problem then return problem end
    numbers[field], count = number, count + 1
  end
end

return post_numbered(numbers, count, function()
  return side ~= "" and cjson.decode(side) or { v = 1 }
end, function(number)
  if owner == "" then write_side(side, is_trashed == "1") end
  local posting = head .. (number == tonumber(former) and as_stored or cmsgpack.pack(number)) .. tail
  redis.call("HSET", is_trashed == "1" and trash or listings, field, posting)
  return posting, is_trashed == "1" and "trashed" or "posted"
end)
