-- Puts trashed jobs back, unclaimed and as if never tried; their failures are remembered.
-- KEYS[1]  postings; [2] trash; then for each job: owner, last_modified, side
-- ARGV[1]  channel; [2] now (msgpack); [3] now (text); ARGV[4…] the field of each job
-- Returns for each job {"ok"}, {"no-such-job"}, {"exists"} or {"failed", why}.
local listings, trash = KEYS[1], KEYS[2]
permit({ "HGET", "HDEL" }, trash, "field")
permit({ "HSET", "HEXISTS" }, listings, "field", "value")
if KEYS[3] then
  permit({ "GET" }, KEYS[5])
  permit({ "DEL" }, KEYS[3])
  permit({ "SET" }, KEYS[4], "value")
end

local replies, events = {}, {}

local function restore(field, owned, modified, beside)
  local posting = redis.call("HGET", trash, field)
  if not posting then return { "no-such-job" } end
  if redis.call("HEXISTS", listings, field) == 1 then return { "exists" } end
  local side = read_side(beside)
  redis.call("DEL", owned)
  redis.call("SET", modified, ARGV[2])
  if side then write_side(beside, text_of_side({ v = 1, failures = side.failures })) end
  redis.call("HSET", listings, field, posting)
  redis.call("HDEL", trash, field)
  events[#events + 1] = event("restored", ARGV[3], field, posting)
  return { "ok" }
end

for at = 4, #ARGV do
  local key = 3 + (at - 4) * 3
  replies[#replies + 1] = alone(restore, ARGV[at], KEYS[key], KEYS[key + 1], KEYS[key + 2])
end
tell(ARGV[1], events)
return replies
