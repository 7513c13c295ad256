-- Abandons, consumes or trashes jobs, each by its own authority.
-- Keys       `listings`, `trash`; of each job: `owned`, `modified`, `sidecar`
-- Arguments  `channel`, `time`, `now`, `history`, `history_length`; `moves`, the hash of the moves; flags: `has_ends`,
--            `has_stays` and `has_commits`, whether any job ends, stays or has a commit; of each job: `field`, `owner`,
--            `fence`, `remark`, `remembered`; `decision`, "abandon", "consume", "consume-failed" or "trash";
--            `authority`, "owner" (of that name), "seen" (claimed by that owner) or "free" (seen unclaimed);
--            `not_before` (text); `attempts` and `postponed`, by how many to change the counts; `failure` (JSON);
--            `commit`, the field to write in moves with the end of the job
-- Replies    for each job: ok ("1" if a namesake left the trash, why the history lacks the job), no-such-job,
--            not-claimed, not-owner, changed, failed
-- history is no declared key: a user without the right to write to it can still settle jobs.
local EVENT_OF = { abandon = "abandoned", consume = "consumed", ["consume-failed"] = "consumed", trash = "trashed" }
local ENDED = { consume = "consumed", ["consume-failed"] = "failed" }
require_rights({ "HGET", "HDEL" }, listings, "field")
require_rights({ "HSET", "HEXISTS" }, trash, "field", "value")
turn_to(1)
require_rights({ "GET" }, owned, sidecar)
require_rights({ "DEL" }, owned)
if has_ends == "1" then require_rights({ "DEL" }, modified, sidecar) end
if has_stays == "1" then
  require_rights({ "SET" }, modified, "value")
  require_rights({ "SET" }, sidecar, "value")
end
if has_commits == "1" then require_rights({ "HSET" }, moves, "field", "value") end

-- Returns the refusal if the authority does not cover the job as it is.
local function refusal()
  if authority == "free" then
    if holder_now() then return { "changed" } end
    return decision == "abandon" and { "not-claimed" } or nil
  end
  local refused = refusal_of(owner, fence)
  return refused and authority == "seen" and { "changed" } or refused
end

-- Returns the changed count, within the bounds that `is_count` accepts.
local function count(number, by)
  return math.min(math.max(0, (number or 0) + tonumber(by)), 2 ^ 32 - 1)
end

-- Records the result of an attempt in the sidecar.
local function record(side)
  side.owner, side.claimed_on, side.fence = nil, nil, nil
  -- A claim ahead of its turn becomes an attempt once it has a result.
  if side.ahead and (failure ~= "" or attempts ~= "0") then
    side.attempts, side.ahead = (side.attempts or 0) + 1, nil
  end
  if remark ~= "" then side.remark = cjson.decode(remark) end
  if not_before ~= "" then side.not_before = not_before end
  side.attempts = count(side.attempts, attempts)
  side.postponed = count(side.postponed, postponed)
  if failure ~= "" then
    side.failures = side.failures or {}
    table.insert(side.failures, cjson.decode(failure))
    while #side.failures > MAX_FAILURES do table.remove(side.failures, 1) end
  end
  if decision == "trash" then side.trashed_on = time end
end

return for_each_job(function()
  local posting = redis.call("HGET", listings, field)
  if not posting then return { "no-such-job" } end
  local refused = refusal()
  if refused then return refused end
  local replaced, forgotten = "0", ""
  -- A fence that was asked for is the one that it was compared with.
  local event = {
    owner = owner, fence = fence ~= "" and fence or fence_of(owner),
    outcome = ENDED[decision], remark = remark ~= "" and remark or nil,
  }
  if ENDED[decision] then
    local side = remembered ~= "" and stored_text()
    -- First: before Redis 7, only this command shows whether the user may use moves, which is no declared key.
    if commit ~= "" then redis.call("HSET", moves, commit, "") end
    redis.call("DEL", owned, modified, sidecar)
    redis.call("HDEL", listings, field)
    forgotten = remember(side)
  else
    local side = read_side()
    if side then record(side) end
    if decision == "trash" then
      if redis.call("HEXISTS", trash, field) == 1 then replaced = "1" end
      -- The stored bytes, whatever they are.
      redis.call("HSET", trash, field, posting)
    end
    write_side(text_of_side(side), decision == "trash")
    redis.call("SET", modified, now)
    redis.call("DEL", owned)
    if decision == "trash" then redis.call("HDEL", listings, field) end
  end
  emit(EVENT_OF[decision], posting, event)
  return { "ok", replaced, forgotten }
end)
