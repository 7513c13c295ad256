-- Starts each script that changes jobs or registers a conductor. `Call` (scripts.rs) puts these before it:
--   local NAME      for each name below that the script's header lists, from KEYS and ARGV
--   turn_to(job)    sets the names that each job has
--   first, jobs     the place in ARGV of the first job's arguments; the number of jobs
--   MAX_FAILURES    how many failures a sidecar keeps
--   MAX_SIDE        the most bytes of a readable sidecar
--   PLACEHOLDER     the first byte of a reply that stands for a value that is too large
--   sidecar.lua     with SIDE_LIFE, how long a sidecar lasts after its last change, in ms
-- In the scripts that post with a claim, posting.lua follows.
--
-- Names that several scripts have, with the same meaning. A flag is "1" or "0", and "" stands for none:
--   listings, trash              hashes: field to posting
--   sequence, fences             counters: the last number and the last fence
--   owned, modified, sidecar     of each job: its owner, the time of its last change, its sidecar
--   channel                      where the events are published
--   now, time                    the time of the change, as msgpack and as text
--   life                         how long a claim lasts, in ms; "" for one that never expires
--   history, history_length      the stream of the history, and the most entries that it keeps
--   remembered                   of each job: its entry in the history
--   field                        of each job, in the hashes
--   owner, fence                 of the claim; the fence "" for any claim of that owner
--   remark                       the audit entry, as JSON
--
-- Each reply for a job is a list: a word, which `Reply::done` (scripts.rs) reads, and its values:
--   ok ...                       the values that the script's header lists
--   no-such-job, exists          the hashes lack the field, or have it already
--   already-claimed OWNER        as not-owner OWNER; the owner is "" if unreadable
--   not-claimed, changed         there is no claim, or another claim or posting than expected
--   delayed TIME                 the end of the delay of the job
--   not-delayed                  there is no delay to end
--   malformed POSTING            the start of the posting, which cannot be read
--   unreadable SIDE              the sidecar, which cannot be read
--   failed WHY                   an error that concerns this job alone

-- Before Redis 7, replicas may run the script again unless told to copy its effects; this script reads the clock.
if redis.replicate_commands then redis.replicate_commands() end

-- Fails before any change if the user lacks a right that the script may need, for the keys of its first job. The server
-- itself checks only whether the user may use the declared keys, not with which commands. Redis before 7 cannot tell; a
-- denied command then fails when the script reaches it.
local function require_rights(commands, ...)
  if not redis.acl_check_cmd then return end
  for _, command in ipairs(commands) do
    if not redis.acl_check_cmd(command, ...) then
      error(redis.error_reply("NOPERM this user has no permissions to run the '" .. command:lower() .. "' command"))
    end
  end
end

-- Checks the rights that last_fence and give_to need.
local function require_claim_rights()
  require_rights({ "TIME" })
  require_rights({ "INCRBY", "SET" }, fences, "1")
  for _, key in ipairs({ owned, modified, sidecar }) do require_rights({ "SET" }, key, "value") end
end

local function digits(number) return string.format("%.0f", number) end

-- Increments a counter and returns it. Returns nil and an error, and changes nothing, if the key holds no counter or
-- the result reaches 2^53, where Lua's integers are no longer exact.
local function count_up(key, by)
  local now = redis.pcall("INCRBY", key, by)
  if type(now) == "table" then
    local is_no_count = now.err:find("WRONGTYPE") or now.err:find("not an integer") or now.err:find("overflow")
    return nil, is_no_count and redis.error_reply("NOCOUNT " .. key) or now
  end
  if now >= by and now < 2 ^ 53 then return now end
  redis.call("INCRBY", key, -by)
  return nil, redis.error_reply((now < by and "NOCOUNT " or "TOOMANY ") .. key)
end

-- Returns the last of count new fences. Each exceeds all earlier ones, even if the server lost its counter, unless its
-- clock stepped back.
local clock
local function last_fence(count)
  -- One reading is enough for all claims of a call, since the counter grows.
  clock = clock or redis.call("TIME")
  local least = clock[1] * 1000000 + clock[2] + count - 1
  local last, problem = count_up(fences, count)
  if problem or last >= least then return last, problem end
  redis.call("SET", fences, digits(least))
  return least
end

-- In these states a server refuses every write, from the first one on.
local REFUSES_ALL = { READONLY = true, MISCONF = true, NOREPLICAS = true, MASTERDOWN = true }

-- Runs the change of one job. An error becomes that job's result; an error that concerns the whole server ends the
-- call.
local function alone(part)
  local is_done, answer = pcall(part)
  if is_done then return answer end
  local text = tostring(type(answer) == "table" and answer.err or answer)
  -- Before Redis 7, the text begins with a place in the script.
  local message = text:gsub("^@user_script: ?%d+: *%-?", "")
  if REFUSES_ALL[message:match("^%u+")] then
    error(redis.acl_check_cmd and redis.error_reply(message) or message, 0)
  end
  return { "failed", text }
end

-- Returns the owner, "" if unreadable, false if the job is unclaimed.
local function holder_now()
  local holder, is_other = text_under(owned)
  return is_other and "" or holder
end

-- Makes this owner the owner of the job, and returns the text of the sidecar.
local function give_to(owner, side)
  local text = text_of_side(side)
  write_side(text)
  redis.call("SET", modified, now)
  -- Write the owner last: until then the job is unclaimed.
  if life == "" then
    redis.call("SET", owned, owner)
  else
    redis.call("SET", owned, owner, "PX", life)
  end
  return text
end

-- Returns the first members of a posting that are text: uuid, name and, if it has one, priority.
local function texts_of(posting)
  local texts, head = {}, posting:byte(1) or 0
  if head < 0x80 or head > 0x8f then return texts end
  local read = { pcall(cmsgpack.unpack_limit, posting, 5, 1) }
  if read[7] == "priority" then
    local _, _, priority = pcall(cmsgpack.unpack_limit, posting, 1, read[2])
    read[8] = priority
  end
  for at = 3, 7, 2 do
    if is_text(read[at]) and is_text(read[at + 1]) then texts[read[at]] = read[at + 1] end
  end
  return texts
end

-- Adds the job to the history. The job is already gone, so an error is returned as text.
local function remember(side)
  if remembered == "" then return "" end
  if not side or #side > MAX_SIDE then side = "" end
  local added = redis.pcall("XADD", history, "MAXLEN", "~", history_length, "*", "job", remembered, "side", side)
  return type(added) == "table" and added.err or ""
end

-- Returns whether the delay of the job lasts. Without their Z, times of any precision compare as text.
local function is_delayed(side)
  return side.not_before and side.not_before:sub(1, -2) > time:sub(1, -2)
end

local events = {}

-- Adds an event of the job. Names and owners need not be text, hence msgpack.
local function emit(kind, posting, more)
  local texts, event = texts_of(posting or ""), more or {}
  event.event, event.time, event.field = kind, time, field
  event.uuid, event.name, event.priority = texts.uuid, texts.name, texts.priority
  events[#events + 1] = event
end

-- Publishes the events. The change is done, so errors are ignored.
local function publish()
  if #events > 0 then redis.pcall("PUBLISH", channel, cmsgpack.pack(events)) end
end

-- Runs a change for each job until it returns nil, publishes the events, and returns the results.
local function for_each_job(part)
  local replies = {}
  for job = 1, jobs do
    turn_to(job)
    stored = nil
    local reply = alone(part)
    if not reply then break end
    replies[job] = reply
  end
  publish()
  return replies
end

-- Returns the fence of this owner's claim, "" if the sidecar has none.
local function fence_of(owner)
  local side = decoded(stored_text())
  return side and side.owner == owner and is_text(side.fence) and side.fence or ""
end

-- Returns the refusal if this owner, or this fence, does not hold the claim.
local function refusal_of(owner, fence)
  local holder = holder_now()
  if not holder then return { "not-claimed" } end
  if holder ~= owner then return { "not-owner", holder } end
  if fence ~= "" and fence_of(owner) ~= fence then return { "changed" } end
end
