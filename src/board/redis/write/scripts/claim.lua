-- Claims the first unclaimed jobs of a list for an owner, as many as are asked for and fit into a reply.
-- Keys       `listings`, `fences`; of each job: `owned`, `modified`, `sidecar`
-- Arguments  `channel`, `time`, `now`, `life`, `owner`; `most`, how many to claim; `starting`, how many of these start
--            now, while the attempts of the others count when they are settled; `not_ahead` (text), until when to
--            delay a job that may not be claimed ahead of its turn again; flags: `is_attempt`, to count attempts;
--            `respects_delay`, to skip delayed jobs; `needs_sidecar`, to skip jobs with an unreadable sidecar;
--            `largest`, the most bytes of a posting that the client reads; of each job: `field`
-- Replies    for each job that was tried: no-such-job, already-claimed, malformed, unreadable, delayed, ok (fence,
--            posting, side), failed
local MAX_BYTES = 4 * 1024 * 1024
require_rights({ "HGET" }, listings, "field")
turn_to(1)
require_rights({ "GET" }, owned)
require_rights({ "GET" }, sidecar)
require_claim_rights()

-- If the key holds another type, no job can be claimed.
redis.call("HGET", listings, "")
local won, bytes = 0, 0

-- Returns the start of a posting that is no map, and for one that is too large the form that `size_unread` reads.
local function unreadable_start(posting)
  if #posting > tonumber(largest) then return PLACEHOLDER .. #posting end
  local head = posting:byte() or 0
  local is_map = head >= 0x80 and head <= 0x8f or head == 0xde or head == 0xdf
  return not is_map and posting:sub(1, 768) or nil
end

return for_each_job(function()
  -- A client that cannot read a reply of this size would not learn of its claims.
  if won == tonumber(most) or bytes > MAX_BYTES then return nil end
  local posting = redis.call("HGET", listings, field)
  if not posting then return { "no-such-job" } end
  local holder = holder_now()
  if holder then return { "already-claimed", holder } end
  -- This check is partial: the client decodes the whole posting and releases the claim if it is malformed.
  local start = unreadable_start(posting)
  if start then
    bytes = bytes + #start
    return { "malformed", start }
  end
  local side, raw = read_side()
  if not side and needs_sidecar == "1" then return { "unreadable", raw } end
  if respects_delay == "1" and side and is_delayed(side) then
    return { "delayed", side.not_before }
  end
  local is_ahead = is_attempt == "1" and won >= tonumber(starting)
  if is_ahead and side and side.ahead then return { "delayed", not_ahead } end
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
  emit("claimed", posting, { owner = owner, fence = fence })
  return { "ok", fence, posting, text }
end)
