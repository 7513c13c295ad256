-- Prolongs claims that are still ours, and never revives one.
-- KEYS[1]  postings; then for each claim: owner, side
-- ARGV[1]  channel; [2] now (text)
-- ARGV[3…] for each claim: field, owner, fence ("" for any), new time to live in ms
-- Returns for each claim {"ok"}, {"no-such-job"}, {"not-claimed"}, {"not-owner", owner}, {"changed"}
-- or {"failed", why}.
permit({ "HEXISTS", "HGET" }, KEYS[1], "field")
if KEYS[2] then
  permit({ "GET" }, KEYS[2])
  permit({ "GET" }, KEYS[3])
  permit({ "PEXPIRE" }, KEYS[2], "1000")
  permit({ "PEXPIRE" }, KEYS[3], "1000")
end

local replies, events = {}, {}

local function renew(at, owned, beside)
  local field, wanted, fence, life = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local refusal = holds(KEYS[1], field, owned, beside, wanted, fence)
  if refusal then return refusal end
  redis.call("PEXPIRE", beside, SIDE_LIFE)
  redis.call("PEXPIRE", owned, life)
  -- Renewing a kept lease is routine; prolonging a claim by hand is news.
  if fence == "" then
    local posting = redis.call("HGET", KEYS[1], field)
    events[#events + 1] = event("extended", ARGV[2], field, posting, { owner = wanted })
  end
  return { "ok" }
end

for at = 3, #ARGV, 4 do
  local key = 2 + (at - 3) / 2
  replies[#replies + 1] = alone(renew, at, KEYS[key], KEYS[key + 1])
end
tell(ARGV[1], events)
return replies
