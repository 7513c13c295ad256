-- Removes trashed jobs for good. Of each job: remark (JSON, "" for none).
-- Returns for each job {"ok", why nothing is remembered of it}, {"no-such-job"} or {"failed", why}.
permit({ "HEXISTS" }, listings, "field")
permit({ "HGET", "HDEL" }, trash, "field")
turn_to(1)
permit({ "DEL" }, modified)

return for_each_job(function()
  local posting = redis.call("HGET", trash, field)
  if not posting then return { "no-such-job" } end
  -- With a namesake on the board, what is beside them is about that one.
  local side
  if redis.call("HEXISTS", listings, field) == 0 then
    side = remembered ~= "" and stored_text()
    redis.call("DEL", modified, sidecar)
  end
  redis.call("HDEL", trash, field)
  local forgotten = remember(side)
  note("purged", posting, { outcome = "purged", remark = remark ~= "" and remark or nil })
  return { "ok", forgotten }
end)
