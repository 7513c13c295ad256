-- Puts trashed jobs back, unclaimed and as if never tried; their failures are remembered. remark (JSON, "" for none) is
-- of all of them.
-- Returns for each job {"ok"}, {"no-such-job"}, {"exists"} or {"failed", why}.
permit({ "HGET", "HDEL" }, trash, "field")
permit({ "HSET", "HEXISTS" }, listings, "field", "value")
turn_to(1)
permit({ "GET" }, sidecar)
permit({ "DEL" }, owned)
permit({ "SET" }, modified, "value")

local who = remark ~= "" and remark or nil

return for_each_job(function()
  local posting = redis.call("HGET", trash, field)
  if not posting then return { "no-such-job" } end
  if redis.call("HEXISTS", listings, field) == 1 then return { "exists" } end
  local side = read_side()
  redis.call("DEL", owned)
  redis.call("SET", modified, now)
  if side then write_side(text_of_side({ v = 1, failures = side.failures, remark = who and cjson.decode(who) })) end
  redis.call("HSET", listings, field, posting)
  redis.call("HDEL", trash, field)
  note("restored", posting, { remark = who })
  return { "ok" }
end)
