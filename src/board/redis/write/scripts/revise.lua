-- Restarts unclaimed or trashed jobs on the board without a delay, or edits their postings.
-- Keys       `listings`, `trash`; of each job: `owned`, `modified`, `sidecar`
-- Arguments  `channel`, `time`, `now`; of each job: `field`, `remark`; `edited`, the new posting of a job whose
--            posting is still `seen`, both "" for no edit; flags: `is_trashed`; `keeps_attempts`, since failures
--            always stay
-- Replies    for each job: ok, no-such-job, exists, already-claimed, unreadable, not-delayed, changed, failed
-- An edit changes nothing else; in the trash, it publishes no event. The client has already refused restarts of
-- malformed records on the board.
require_rights({ "HGET", "HDEL" }, trash, "field")
require_rights({ "HGET", "HSET", "HEXISTS" }, listings, "field", "value")
turn_to(1)
if edited ~= "" and is_trashed == "1" then require_rights({ "HSET" }, trash, "field", "value") end
require_rights({ "GET", "SET" }, sidecar, "value")
require_rights({ "GET", "DEL" }, owned)
require_rights({ "SET" }, modified, "value")

-- Returns the refusal if a job on the board cannot be retried or edited.
local function refusal(side, raw, posting)
  local holder = holder_now()
  if holder then return { "already-claimed", holder } end
  if edited ~= "" then return posting ~= seen and { "changed" } or nil end
  if not side then return { "unreadable", raw } end
  if is_delayed(side) then return nil end
  local count = (side.attempts or 0) + (side.postponed or 0)
  if keeps_attempts == "1" or count == 0 then return { "not-delayed" } end
end

local function reset(side)
  side.remark = remark ~= "" and cjson.decode(remark) or nil
  if edited ~= "" then return end
  side.owner, side.claimed_on, side.fence, side.session = nil, nil, nil, nil
  side.not_before, side.trashed_on = nil, nil
  if keeps_attempts ~= "1" then
    side.attempts, side.postponed, side.ahead, side.first_claimed_on = nil, nil, nil, nil
  end
end

return for_each_job(function()
  local posting = redis.call("HGET", is_trashed == "1" and trash or listings, field)
  if not posting then return { "no-such-job" } end
  local side, raw = read_side()
  if is_trashed == "1" and edited ~= "" then
    if posting ~= seen then return { "changed" } end
    redis.call("HSET", trash, field, edited)
    -- A namesake on the board owns the sidecar of both.
    if redis.call("HEXISTS", listings, field) == 0 then
      if side then reset(side) end
      write_side(text_of_side(side), true)
    end
    return { "ok" }
  elseif is_trashed == "1" then
    if redis.call("HEXISTS", listings, field) == 1 then return { "exists" } end
  else
    local refused = refusal(side, raw, posting)
    if refused then return refused end
  end
  redis.call("DEL", owned)
  redis.call("SET", modified, now)
  if side then reset(side) end
  write_side(text_of_side(side))
  if edited ~= "" then
    posting = edited
    redis.call("HSET", listings, field, posting)
  elseif is_trashed == "1" then
    redis.call("HSET", listings, field, posting)
    redis.call("HDEL", trash, field)
  end
  emit("restored", posting, { remark = remark ~= "" and remark or nil })
  return { "ok" }
end)
