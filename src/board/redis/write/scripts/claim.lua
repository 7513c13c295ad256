-- Claims the first jobs of a list that nobody has, as many as are wanted.
-- KEYS[1]  postings; [2] fence; then for each job: owner, last_modified, side
-- ARGV[1]  channel
-- ARGV[2]  owner; [3] its time to live in ms ("" for none); [4] now (msgpack); [5] now (text)
-- ARGV[6]  how many are wanted; [7] "1" to count it as an attempt; [8] "1" to pass over postponed jobs
-- ARGV[9]  how many of them are begun at once: the others count as attempts when they are settled;
--          [10] until when one is postponed that may not be claimed ahead of its turn again (text);
--          [11] "1" to pass over one whose record cannot be read
-- ARGV[12…] the field of each job
-- Returns, for each job that was tried, {"ok", fence, posting, side}, {"no-such-job"},
-- {"already-claimed", owner}, {"postponed", until}, {"unreadable", side} or {"failed", why}.
local listings, channel, owner = KEYS[1], ARGV[1], ARGV[2]
local wanted, is_attempt, respects = tonumber(ARGV[6]), ARGV[7] == "1", ARGV[8] == "1"
local at_once, needs_side = tonumber(ARGV[9]), ARGV[11] == "1"
permit({ "HGET" }, listings, "field")
permit({ "TIME" })
permit({ "INCRBY" }, KEYS[2], "1")
permit({ "GET" }, KEYS[3])
permit({ "SET" }, KEYS[2], "1")
permit({ "SET" }, KEYS[3], owner)

local replies, events, won = {}, {}, 0

local function claim(field, owned, modified, beside)
  local posting = redis.call("HGET", listings, field)
  if not posting then return { "no-such-job" } end
  local holder = owner_under(owned)
  if holder then return { "already-claimed", holder } end
  local side, raw = read_side(beside)
  if not side and needs_side then return { "unreadable", raw } end
  if respects and side and side.not_before and side.not_before > ARGV[5] then
    return { "postponed", side.not_before }
  end
  if side and side.ahead and is_attempt and won >= at_once then return { "postponed", ARGV[10] } end
  local fence, problem = next_fence(KEYS[2])
  if problem then error(problem) end
  local is_ahead = is_attempt and won >= at_once
  if side then
    side.owner, side.claimed_on, side.fence = owner, ARGV[5], fence
    side.ahead = is_ahead or nil
    if is_attempt and not is_ahead then side.attempts = math.min((side.attempts or 0) + 1, 2 ^ 32 - 1) end
  end
  local text = text_of_side(side)
  write_side(beside, text)
  redis.call("SET", modified, ARGV[4])
  -- The deciding write comes last: what is beside a job that nobody has says nothing yet.
  if ARGV[3] == "" then
    redis.call("SET", owned, owner)
  else
    redis.call("SET", owned, owner, "PX", ARGV[3])
  end
  won = won + 1
  events[#events + 1] = event("claimed", ARGV[5], field, posting, { owner = owner, fence = fence })
  return { "ok", fence, posting, text }
end

-- Without a hash none of them can be claimed.
redis.call("HGET", listings, "")
for at = 12, #ARGV do
  if won == wanted then break end
  local key = 3 + (at - 12) * 3
  replies[#replies + 1] = alone(claim, ARGV[at], KEYS[key], KEYS[key + 1], KEYS[key + 2])
end
tell(channel, events)
return replies
