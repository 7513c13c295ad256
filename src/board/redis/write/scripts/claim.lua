-- Claims the first jobs of a list that nobody has, as many as are wanted and fit into a reply, for an owner.
-- is_attempt: "1" to count it as one; respects_not_before: "1" to pass over postponed jobs; at_once: how many of them are
-- begun at once, while the others count as attempts when they are settled; not_ahead: until when one is postponed that may
-- not be claimed ahead of its turn again (text); needs_side: "1" to pass over one whose record cannot be read.
-- Returns, for each job that was tried, {"ok", fence, posting, side}, {"no-such-job"},
-- {"already-claimed", owner}, {"postponed", until}, {"unreadable", side} or {"failed", why}.
local MOST_BYTES = 4 * 1024 * 1024
permit({ "HGET" }, listings, "field")
permit({ "TIME" })
permit({ "INCRBY" }, fences, "1")
turn_to(1)
permit({ "GET" }, owned)
permit({ "SET" }, fences, "1")
permit({ "SET" }, owned, owner)

-- Without a hash none of them can be claimed.
redis.call("HGET", listings, "")
local won, bytes = 0, 0

return for_each_job(function()
  -- A reply that is too large for its reader says nothing of the claims in it.
  if won == tonumber(wanted) or bytes > MOST_BYTES then return nil end
  local posting = redis.call("HGET", listings, field)
  if not posting then return { "no-such-job" } end
  local holder = holder_now()
  if holder then return { "already-claimed", holder } end
  local side, raw = read_side()
  if not side and needs_side == "1" then return { "unreadable", raw } end
  if respects_not_before == "1" and side and side.not_before and side.not_before > time then
    return { "postponed", side.not_before }
  end
  local is_ahead = is_attempt == "1" and won >= tonumber(at_once)
  if is_ahead and side and side.ahead then return { "postponed", not_ahead } end
  local number, problem = last_fence(1)
  if problem then error(problem) end
  local fence = digits(number)
  if side then
    side.first_claimed_on = side.first_claimed_on or time
    side.owner, side.claimed_on, side.fence, side.ahead = owner, time, fence, is_ahead or nil
    if is_attempt == "1" and not is_ahead then side.attempts = math.min((side.attempts or 0) + 1, 2 ^ 32 - 1) end
  end
  local text = give_to(owner, side)
  won, bytes = won + 1, bytes + #posting + #text
  note("claimed", posting, { owner = owner, fence = fence })
  return { "ok", fence, posting, text }
end)
