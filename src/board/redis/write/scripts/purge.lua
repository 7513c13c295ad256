-- Deletes trashed jobs for good.
-- Keys       `listings`, `trash`; of each job: `owned`, `modified`, `sidecar`
-- Arguments  `channel`, `time`, `history`, `history_length`; of each job: `field`, `remark`, `remembered`
-- Replies    for each job: ok (why the history lacks it), no-such-job, failed
require_rights({ "HEXISTS" }, listings, "field")
require_rights({ "HGET", "HDEL" }, trash, "field")
turn_to(1)
if remembered ~= "" then require_rights({ "GET" }, sidecar) end
require_rights({ "DEL" }, modified, sidecar)

return for_each_job(function()
  local posting = redis.call("HGET", trash, field)
  if not posting then return { "no-such-job" } end
  -- A namesake on the board owns the keys of both.
  local side
  if redis.call("HEXISTS", listings, field) == 0 then
    side = remembered ~= "" and stored_text()
    redis.call("DEL", modified, sidecar)
  end
  redis.call("HDEL", trash, field)
  local forgotten = remember(side)
  emit("purged", posting, { outcome = "purged", remark = remark ~= "" and remark or nil })
  return { "ok", forgotten }
end)
