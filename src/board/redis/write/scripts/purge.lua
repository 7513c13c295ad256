-- Removes trashed jobs for good.
-- KEYS[1]  postings; [2] trash; then for each job: owner, last_modified, side
-- ARGV[1]  channel; [2] now (text); ARGV[3…] the field of each job
-- Returns for each job {"ok"}, {"no-such-job"} or {"failed", why}.
permit({ "HEXISTS" }, KEYS[1], "field")
permit({ "HGET", "HDEL" }, KEYS[2], "field")
if KEYS[3] then permit({ "DEL" }, KEYS[4]) end

local replies, events = {}, {}

local function purge(field, modified, beside)
  local posting = redis.call("HGET", KEYS[2], field)
  if not posting then return { "no-such-job" } end
  -- With a namesake on the board, what is beside them is about that one.
  if redis.call("HEXISTS", KEYS[1], field) == 0 then redis.call("DEL", modified, beside) end
  redis.call("HDEL", KEYS[2], field)
  events[#events + 1] = event("purged", ARGV[2], field, posting)
  return { "ok" }
end

for at = 3, #ARGV do
  local key = 3 + (at - 3) * 3
  replies[#replies + 1] = alone(purge, ARGV[at], KEYS[key + 1], KEYS[key + 2])
end
tell(ARGV[1], events)
return replies
