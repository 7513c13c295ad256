-- Posts numbered jobs. Only the scripts that post with a claim contain it, after the prelude.

-- Checks the rights to post jobs, and to claim them if there is an owner. Turns to the first job.
local function require_posting_rights()
  require_rights({ "HSET", "HEXISTS" }, listings, "field", "value")
  require_rights({ "INCRBY" }, sequence, "1")
  turn_to(1)
  require_rights({ "DEL" }, owned, modified, sidecar)
  if owner ~= "" then require_claim_rights() end
end

-- Posts the jobs whose fields have an entry in `numbers` (`count` of them); the other jobs already exist. With an
-- owner, it claims each job and writes the sidecar that `claimed_side` returns. `store(number)` stores the current job
-- and returns its posting and the event kind.
local function post_numbered(numbers, count, claimed_side, store)
  local claims, problem = 0, nil
  if owner ~= "" and count > 0 then claims, problem = last_fence(count) end
  if problem then return problem end
  claims = claims - count
  return for_each_job(function()
    local number, fence = numbers[field], ""
    -- Of two jobs with the same field, only the first is posted.
    if not number then return { "exists" } end
    numbers[field], claims = nil, claims + 1
    -- The remains of a namesake do not describe this job.
    redis.call("DEL", owned, modified, sidecar)
    if owner ~= "" then
      fence = digits(claims)
      local side = claimed_side()
      side.owner, side.claimed_on, side.fence = owner, time, fence
      give_to(owner, side)
    end
    local posting, kind = store(number)
    emit(kind, posting, { sequence = number })
    if fence ~= "" then emit("claimed", posting, { owner = owner, fence = fence, sequence = number }) end
    return { "ok", digits(number), fence }
  end)
end
