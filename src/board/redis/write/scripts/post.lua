-- Posts jobs, each with the next number. A claim counts an attempt.
-- Keys       `listings`, `sequence`, `fences`; of each job: `owned`, `modified`, `sidecar`
-- Arguments  `channel`, `time`, `now`, `life`, `owner` ("" to claim none); of each job: `field`; `posting` up to its
--            number
-- Replies    for each job: ok (number, fence or ""), exists, failed
require_rights({ "HSET", "HEXISTS" }, listings, "field", "value")
require_rights({ "INCRBY" }, sequence, "1")
turn_to(1)
require_rights({ "DEL" }, owned, modified, sidecar)
if owner ~= "" then require_claim_rights() end

local free, count = {}, 0
for job = 1, jobs do
  turn_to(job)
  if not free[field] and redis.call("HEXISTS", listings, field) == 0 then
    free[field], count = true, count + 1
  end
end

local number, claims, problem = 0, 0, nil
if count > 0 then
  number, problem = count_up(sequence, count)
  if number and owner ~= "" then claims, problem = last_fence(count) end
  if problem then return problem end
end
number, claims = number - count, claims - count

return for_each_job(function()
  -- Of two jobs with the same field, only the first is posted.
  if not free[field] then return { "exists" } end
  free[field], number, claims = nil, number + 1, claims + 1
  -- The remains of a namesake do not describe this job.
  redis.call("DEL", owned, modified, sidecar)
  local fence = ""
  if owner ~= "" then
    fence = digits(claims)
    give_to(owner, { v = 1, owner = owner, claimed_on = time, fence = fence, attempts = 1, first_claimed_on = time })
  end
  redis.call("HSET", listings, field, posting .. cmsgpack.pack(number))
  emit("posted", posting, { sequence = number })
  if fence ~= "" then emit("claimed", posting, { owner = owner, fence = fence, sequence = number }) end
  return { "ok", digits(number), fence }
end)
