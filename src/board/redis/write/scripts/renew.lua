-- Renews claims that are still ours, and never revives one.
-- Keys       `listings`; of each claim: `owned`, `modified`, `sidecar`
-- Arguments  `channel`, `time`; of each claim: `field`, `owner`, `fence`, `life`
-- Replies    for each claim: ok, no-such-job, not-claimed, not-owner, changed, failed
require_rights({ "HEXISTS", "HGET" }, listings, "field")
turn_to(1)
require_rights({ "GET" }, owned)
require_rights({ "GET" }, sidecar)
require_rights({ "PEXPIRE" }, owned, "1000")
require_rights({ "PEXPIRE" }, sidecar, "1000")

return for_each_job(function()
  if redis.call("HEXISTS", listings, field) == 0 then return { "no-such-job" } end
  local refusal = refusal_of(owner, fence)
  if refusal then return refusal end
  redis.call("PEXPIRE", sidecar, SIDE_LIFE)
  redis.call("PEXPIRE", owned, life)
  -- Renewing a kept lease is routine; prolonging a claim by hand is news.
  if fence == "" then emit("extended", redis.call("HGET", listings, field), { owner = owner }) end
  return { "ok" }
end)
