-- Removes trashed jobs for good.
-- KEYS[1]  postings; [2] trash; then for each job: owner, last_modified, side
-- ARGV[1]  channel; [2] now (text); ARGV[3…] the field of each job
-- Returns for each job {"ok"} or {"no-such-job"}.
permit({ "HEXISTS" }, KEYS[1], "field")
permit({ "HGET", "HDEL" }, KEYS[2], "field")
if KEYS[3] then permit({ "DEL" }, KEYS[4]) end

local replies, events = {}, {}
for at = 3, #ARGV do
  local key = 3 + (at - 3) * 3
  local posting = redis.call("HGET", KEYS[2], ARGV[at])
  if not posting then
    replies[#replies + 1] = { "no-such-job" }
  else
    -- With a namesake on the board, what is beside them is about that one.
    if redis.call("HEXISTS", KEYS[1], ARGV[at]) == 0 then
      redis.call("DEL", KEYS[key + 1], KEYS[key + 2])
    end
    redis.call("HDEL", KEYS[2], ARGV[at])
    events[#events + 1] = event("purged", ARGV[2], ARGV[at], posting)
    replies[#replies + 1] = { "ok" }
  end
end
tell(ARGV[1], events)
return replies
