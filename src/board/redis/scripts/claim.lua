-- Claims the first jobs of a list that nobody has, as many as are wanted.
-- KEYS[1]  postings; [2] fence; then for each job: owner, last_modified, side
-- ARGV[1]  channel
-- ARGV[2]  owner; [3] its time to live in ms ("" for none); [4] now (msgpack); [5] now (text)
-- ARGV[6]  how many are wanted; [7] "1" to count it as an attempt; [8] "1" to pass over postponed jobs
-- ARGV[9]  how many of them are begun at once: the others count as attempts when they are settled;
--          [10] until when one is postponed that may not be claimed ahead of its turn again (text)
-- ARGV[11…] the field of each job
-- Returns, for each job that was tried, {"ok", fence, posting, side}, {"no-such-job"},
-- {"already-claimed", owner} or {"postponed", until}.
local listings, channel, owner = KEYS[1], ARGV[1], ARGV[2]
local wanted, is_attempt, respects = tonumber(ARGV[6]), ARGV[7] == "1", ARGV[8] == "1"
local at_once = tonumber(ARGV[9])
permit({ "HGET" }, listings, "field")
permit({ "INCRBY" }, KEYS[2], "1")
permit({ "GET" }, KEYS[3])
permit({ "SET" }, KEYS[3], owner)

local replies, events, won = {}, {}, 0
for at = 11, #ARGV do
  if won == wanted then break end
  local key = 3 + (at - 11) * 3
  local owned, modified, beside = KEYS[key], KEYS[key + 1], KEYS[key + 2]
  local posting = redis.call("HGET", listings, ARGV[at])
  local holder = posting and owner_under(owned)
  local side = posting and not holder and read_side(beside)
  if not posting then
    replies[#replies + 1] = { "no-such-job" }
  elseif holder then
    replies[#replies + 1] = { "already-claimed", holder }
  elseif respects and side and side.not_before and side.not_before > ARGV[5] then
    replies[#replies + 1] = { "postponed", side.not_before }
  elseif side and side.ahead and is_attempt and won >= at_once then
    replies[#replies + 1] = { "postponed", ARGV[10] }
  else
    local fence, problem = count_up(KEYS[2], 1)
    if problem then
      if won == 0 then return problem end
      break
    end
    won = won + 1
    if side then
      side.owner, side.claimed_on, side.fence = owner, ARGV[5], fence
      side.ahead = is_attempt and won > at_once or nil
      if is_attempt and not side.ahead then side.attempts = (side.attempts or 0) + 1 end
    end
    local text = write_side(beside, side)
    redis.call("SET", modified, ARGV[4])
    -- The deciding write comes last: what is beside a job that nobody has says nothing yet.
    if ARGV[3] == "" then
      redis.call("SET", owned, owner)
    else
      redis.call("SET", owned, owner, "PX", ARGV[3])
    end
    events[#events + 1] = event("claimed", ARGV[5], ARGV[at], posting, { owner = owner, fence = fence })
    replies[#replies + 1] = { "ok", fence, posting, text }
  end
end
tell(channel, events)
return replies
