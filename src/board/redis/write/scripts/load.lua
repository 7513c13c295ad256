-- Puts jobs on the board, or in the trash, that were on a board before, each as it was there; with an owner ("" for none),
-- claimed, which counts no attempt.
-- Of each job: is_trashed, "1" for the trash; field; head and tail, its posting but for its number; wanted, the number that
-- it had ("" for none), and stored, how that is to be stored; side, the record beside it ("" for none). is_malformed, "1"
-- for a record that has no number, which is all in head.
-- A number is kept if none was given out that is greater; in the trash in any case.
-- Returns for each job {"ok", number, fence or ""} or {"exists"}.
permit({ "HSET", "HEXISTS" }, listings, "field", "value")
permit({ "HSET", "HEXISTS" }, trash, "field", "value")
permit({ "GET" }, sequence)
permit({ "INCRBY" }, sequence, "1")
turn_to(1)
permit({ "DEL" }, owned, modified, sidecar)
permit({ "SET" }, sidecar, "value")
if owner ~= "" then
  permit({ "TIME" })
  permit({ "INCRBY", "SET" }, fences, "1")
  permit({ "SET" }, owned, owner)
  permit({ "SET" }, modified, now)
end

-- Returns the number that a job is to have; nothing and an error, if no more can be given out.
local function next_number()
  local had = tonumber(wanted)
  if not had then return count_up(sequence, 1) end
  local last = redis.pcall("GET", sequence)
  last = type(last) == "string" and tonumber(last) or 0
  if had > last then return count_up(sequence, had - last) end
  if is_trashed == "1" then return had end
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
  -- Of two with the same field the first one has it.
  if not number then return { "exists" } end
  numbers[field] = nil
  -- What a namesake left behind is not about this job.
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
    posting = head .. (number == tonumber(wanted) and stored or cmsgpack.pack(number)) .. tail
  end
  redis.call("HSET", is_trashed == "1" and trash or listings, field, posting)
  note(is_trashed == "1" and "trashed" or "posted", posting, { sequence = number })
  if fence ~= "" then note("claimed", posting, { owner = owner, fence = fence, sequence = number }) end
  return { "ok", digits(number), fence }
end)
