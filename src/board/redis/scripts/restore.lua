-- Puts trashed jobs back, unclaimed and as if never tried; their failures are remembered.
-- KEYS[1]  postings; [2] trash; then for each job: owner, last_modified, side
-- ARGV[1]  channel; [2] now (msgpack); [3] now (text); ARGV[4…] the field of each job
-- Returns for each job {"ok"}, {"no-such-job"} or {"exists"}.
local listings, trash = KEYS[1], KEYS[2]
permit({ "HGET", "HDEL" }, trash, "field")
permit({ "HSET", "HEXISTS" }, listings, "field", "value")
if KEYS[3] then
  permit({ "GET" }, KEYS[5])
  permit({ "DEL" }, KEYS[3])
  permit({ "SET" }, KEYS[4], "value")
end

local replies, events = {}, {}
for at = 4, #ARGV do
  local key = 3 + (at - 4) * 3
  local posting = redis.call("HGET", trash, ARGV[at])
  if not posting then
    replies[#replies + 1] = { "no-such-job" }
  elseif redis.call("HEXISTS", listings, ARGV[at]) == 1 then
    replies[#replies + 1] = { "exists" }
  else
    local side = read_side(KEYS[key + 2])
    redis.call("DEL", KEYS[key])
    redis.call("SET", KEYS[key + 1], ARGV[2])
    if side then write_side(KEYS[key + 2], { v = 1, failures = side.failures }) end
    redis.call("HSET", listings, ARGV[at], posting)
    redis.call("HDEL", trash, ARGV[at])
    events[#events + 1] = event("restored", ARGV[3], ARGV[at], posting)
    replies[#replies + 1] = { "ok" }
  end
end
tell(ARGV[1], events)
return replies
