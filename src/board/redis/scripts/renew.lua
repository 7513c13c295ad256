-- Prolongs claims that are still ours, and never revives one.
-- KEYS[1]  postings; then for each claim: owner, side
-- ARGV[1]  channel; [2] now (text)
-- ARGV[3…] for each claim: field, owner, fence ("" for any), new time to live in ms
-- Returns for each claim {"ok"}, {"no-such-job"}, {"not-claimed"}, {"not-owner", owner} or {"changed"}.
permit({ "HEXISTS", "HGET" }, KEYS[1], "field")
if KEYS[2] then
  permit({ "GET" }, KEYS[2])
  permit({ "GET" }, KEYS[3])
  permit({ "PEXPIRE" }, KEYS[2], "1000")
  permit({ "PEXPIRE" }, KEYS[3], "1000")
end

local replies, events = {}, {}
for at = 3, #ARGV, 4 do
  local key = 2 + (at - 3) / 2
  local field, wanted, fence, life = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local refusal = holds(KEYS[1], field, KEYS[key], KEYS[key + 1], wanted, fence)
  if not refusal then
    redis.call("PEXPIRE", KEYS[key + 1], SIDE_LIFE)
    redis.call("PEXPIRE", KEYS[key], life)
    -- Renewing a kept lease is routine; prolonging a claim by hand is news.
    if fence == "" then
      local posting = redis.call("HGET", KEYS[1], field)
      events[#events + 1] = event("extended", ARGV[2], field, posting, { owner = wanted })
    end
  end
  replies[#replies + 1] = refusal or { "ok" }
end
tell(ARGV[1], events)
return replies
