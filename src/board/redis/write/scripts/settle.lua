-- Abandons, consumes or trashes jobs, each by its own authority.
-- KEYS[1]  postings; [2] trash; then for each job: owner, last_modified, side
-- ARGV[1]  channel; [2] now (msgpack); [3] now (text)
-- ARGV[4…] for each job, nine: field; "abandon", "consume" or "trash"; the authority: "owner"
--          (of that name), "seen" (claimed by that owner) or "free" (seen unclaimed); owner; fence
--          ("" for any); not_before ("" for none); by how many attempts and postponements to change
--          the counts; failure (JSON, "" for none)
-- Returns for each job {"ok", "1" if a namesake had to leave the trash}, {"no-such-job"},
-- {"not-claimed"}, {"not-owner", owner}, {"changed"} or {"failed", why}.
local listings, trash = KEYS[1], KEYS[2]
permit({ "HGET", "HEXISTS", "HDEL" }, listings, "field")
permit({ "HSET", "HEXISTS" }, trash, "field", "value")
if KEYS[3] then
  permit({ "GET" }, KEYS[3])
  permit({ "DEL" }, KEYS[3])
  permit({ "SET" }, KEYS[4], "value")
end

local FAILURES = 3

-- Returns what keeps somebody from settling a job; nothing, if nothing does.
local function refusal_of(field, owned, beside, outcome, authority, owner, fence)
  if authority == "owner" then return holds(listings, field, owned, beside, owner, fence) end
  if redis.call("HEXISTS", listings, field) == 0 then return { "no-such-job" } end
  local holder = owner_under(owned)
  if authority == "free" then
    if holder then return { "changed" } end
    return outcome == "abandon" and { "not-claimed" } or nil
  end
  if holder ~= owner then return { "changed" } end
  if fence ~= "" and fence_of(beside, owner) ~= fence then return { "changed" } end
end

-- Returns a count that is changed, and still one that can be read.
local function count(number, by)
  return math.min(math.max(0, (number or 0) + tonumber(by)), 2 ^ 32 - 1)
end

-- Notes in the record beside a job what came of an attempt.
local function note(side, not_before, attempts, postponed, failure)
  if not side then return end
  side.owner, side.claimed_on, side.fence = nil, nil, nil
  -- It was an attempt, if anything came of it.
  if side.ahead and (failure ~= "" or attempts ~= "0") then
    side.attempts, side.ahead = (side.attempts or 0) + 1, nil
  end
  if not_before ~= "" then side.not_before = not_before end
  side.attempts = count(side.attempts, attempts)
  side.postponed = count(side.postponed, postponed)
  if failure ~= "" then
    side.failures = side.failures or {}
    table.insert(side.failures, cjson.decode(failure))
    while #side.failures > FAILURES do table.remove(side.failures, 1) end
  end
end

local replies, events = {}, {}

local function settle(at, owned, modified, beside)
  local field, outcome, authority, owner, fence = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local refusal = refusal_of(field, owned, beside, outcome, authority, owner, fence)
  if refusal then return refusal end
  local replaced = "0"
  -- A fence that was asked for is the one that it was compared with.
  local claim = { owner = owner, fence = fence ~= "" and fence or fence_of(beside, owner) }
  local posting = redis.call("HGET", listings, field)
  if outcome == "consume" then
    redis.call("DEL", owned, modified, beside)
    redis.call("HDEL", listings, field)
  else
    local side = read_side(beside)
    note(side, ARGV[at + 5], ARGV[at + 6], ARGV[at + 7], ARGV[at + 8])
    if outcome == "trash" then
      if side then side.trashed_on = ARGV[3] end
      if redis.call("HEXISTS", trash, field) == 1 then replaced = "1" end
      -- The stored bytes, whatever they are.
      redis.call("HSET", trash, field, posting)
    end
    write_side(beside, text_of_side(side), outcome == "trash")
    redis.call("SET", modified, ARGV[2])
    redis.call("DEL", owned)
    if outcome == "trash" then redis.call("HDEL", listings, field) end
  end
  events[#events + 1] = event(PAST[outcome], ARGV[3], field, posting, claim)
  return { "ok", replaced }
end

for at = 4, #ARGV, 9 do
  local key = 3 + (at - 4) / 3
  replies[#replies + 1] = alone(settle, at, KEYS[key], KEYS[key + 1], KEYS[key + 2])
end
tell(ARGV[1], events)
return replies
