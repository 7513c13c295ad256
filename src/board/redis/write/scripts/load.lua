-- Posts jobs of another board on the board or in the trash, in their former state. A claim counts no attempt.
-- Keys       `listings`, `trash`, `sequence`, `fences`; of each job: `owned`, `modified`, `sidecar`
-- Arguments  `channel`, `time`, `now`, `life`, `owner` ("" to claim none); of each job: `field`; `head` and `tail`, its
--            posting around its number; `former`, its former number, and `stored`, the bytes of that; `side`, its
--            sidecar; flags: `is_trashed`; `is_malformed`, for a record without a number, which is all in head
-- Replies    for each job: ok (number, fence or ""), exists, failed
-- A job keeps its number if no greater one was given, and in the trash in any case.
require_rights({ "HSET", "HEXISTS" }, listings, "field", "value")
require_rights({ "HSET", "HEXISTS" }, trash, "field", "value")
require_rights({ "GET" }, sequence)
require_rights({ "INCRBY" }, sequence, "1")
turn_to(1)
require_rights({ "DEL" }, owned, modified, sidecar)
require_rights({ "SET" }, sidecar, "value")
if owner ~= "" then require_claim_rights() end

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
    local number, problem = 0, nil
    if is_malformed ~= "1" then number, problem = next_number() end
    if problem then return problem end
    numbers[field], count = number, count + 1
  end
end

local claims, problem = 0, nil
if owner ~= "" and count > 0 then claims, problem = last_fence(count) end
if problem then return problem end
claims = claims - count

return for_each_job(function()
  local number = numbers[field]
  -- Of two jobs with the same field, only the first is posted.
  if not number then return { "exists" } end
  numbers[field] = nil
  -- The remains of a namesake do not describe this job.
  redis.call("DEL", owned, modified, sidecar)
  local fence = ""
  if owner ~= "" then
    claims = claims + 1
    fence = digits(claims)
    local claimed = side ~= "" and cjson.decode(side) or { v = 1 }
    claimed.owner, claimed.claimed_on, claimed.fence = owner, time, fence
    give_to(owner, claimed)
  else
    write_side(side, is_trashed == "1")
  end
  local posting = head
  if is_malformed ~= "1" then
    posting = head .. (number == tonumber(former) and stored or cmsgpack.pack(number)) .. tail
  end
  redis.call("HSET", is_trashed == "1" and trash or listings, field, posting)
  emit(is_trashed == "1" and "trashed" or "posted", posting, { sequence = number })
  if fence ~= "" then emit("claimed", posting, { owner = owner, fence = fence, sequence = number }) end
  return { "ok", digits(number), fence }
end)
