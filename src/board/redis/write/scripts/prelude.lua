-- Begins every script that changes jobs. Before it come the names of what it is given (see `Call`), and `turn_to`, which
-- gives those of a job the values of the next one. Wherever they are there, they are:
--   keys    listings, trash (hashes); sequence, fences (counters); of each job: owned, modified, sidecar
--   values  channel; now (msgpack), time (text) of the change; life, the time to live of a claim in ms, "" for none;
--           of each job: field
--           past (stream), history (its length); of each job: remembered, what is kept of it there, "" for nothing
-- The record beside a job ("side") is JSON; one that cannot be read, or is of a version that is not known here, is left
-- as it is. All times are text of one form, so that they compare as text.

local SIDE_LIFE = 7 * 24 * 3600 * 1000
local LARGEST_SIDE = 256 * 1024

-- Replicas get what a script did, and not the script, which asks for the time: before Redis 7 that
-- has to be said.
if redis.replicate_commands then redis.replicate_commands() end

-- Fails before anything is changed if the user may not do all that the script may have to do.
-- Before Redis 7 there is no asking; a script then stops at the first command that is denied.
local function permit(commands, ...)
  if not redis.acl_check_cmd then return end
  for _, command in ipairs(commands) do
    if not redis.acl_check_cmd(command, ...) then
      error(redis.error_reply("NOPERM this user has no permissions to run the '" .. command:lower() .. "' command"))
    end
  end
end

local function digits(number) return string.format("%.0f", number) end

-- Counts up, and returns where a counter is now; from 2^53 on Lua's numbers are not exact. Where there is no count, or
-- none that it can go on from, it changes nothing, and returns nothing and an error.
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

-- Returns the last of so many new fences: they are greater than all before, also than those that a server has forgotten
-- which came back with less than it had, as long as its clock did not step back.
local clock
local function last_fence(count)
  -- One answer will do for all claims of a call: each fence is greater than the one before.
  clock = clock or redis.call("TIME")
  local least = clock[1] * 1000000 + clock[2] + count - 1
  local last, problem = count_up(fences, count)
  if problem or last >= least then return last, problem end
  redis.call("SET", fences, digits(least))
  return least
end

-- In these states a server takes no writes at all, which it says at the first one.
local REFUSES_ALL = { READONLY = true, MISCONF = true, NOREPLICAS = true, MASTERDOWN = true }

-- Does one job's part of a batch: what fails in it is the answer for that job, and for no other; but
-- where the server takes no writes it is the answer for all, and nothing was done.
local function alone(part)
  local is_done, answer = pcall(part)
  if is_done then return answer end
  local text = tostring(type(answer) == "table" and answer.err or answer)
  -- Before Redis 7 it begins with a place in the script.
  local said = text:gsub("^@user_script: ?%d+: *%-?", "")
  if REFUSES_ALL[said:match("^%u+")] then
    error(redis.acl_check_cmd and redis.error_reply(said) or said, 0)
  end
  return { "failed", text }
end

-- Returns the text under a key, and whether there is something else instead, which somebody put
-- there by hand: it must not stop what is done to other jobs.
local function text_under(key)
  local found = redis.pcall("GET", key)
  if type(found) == "table" then return nil, true end
  return found, false
end

-- Returns who holds the job, "" for an owner that cannot be read; nothing, if nobody does.
local function holder_now()
  local holder, is_other = text_under(owned)
  return is_other and "" or holder
end

local function is_text(value) return type(value) == "string" end

local function is_number(value) return type(value) == "number" and value >= 0 and value % 1 == 0 end

local function is_count(value) return is_number(value) and value < 2 ^ 32 end

local function is_flag(value) return type(value) == "boolean" end

-- Returns what each member of the record has to be; the same as the program itself requires of it.
local function rules_of_side()
  local DAYS = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

  local function is_time(value)
    if not is_text(value) then return false end
    local date, clock, rest = value:match("^(%d%d%d%d%-%d%d%-%d%d)T(%d%d:%d%d:%d%d)(.*)$")
    if not date or not (rest == "Z" or rest:match("^%.%d+Z$")) then return false end
    local year, month, day = tonumber(date:sub(1, 4)), tonumber(date:sub(6, 7)), tonumber(date:sub(9, 10))
    local is_leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
    if not DAYS[month] or day < 1 or day > DAYS[month] or (day == 29 and month == 2 and not is_leap) then
      return false
    end
    return clock:sub(1, 2) < "24" and clock:sub(4, 5) < "60" and clock:sub(7, 8) < "60"
  end

  local function is_nothing_or(is_right)
    return function(value) return value == nil or value == cjson.null or is_right(value) end
  end

  local function is_exit(value)
    return type(value) == "number" and value % 1 == 0 and math.abs(value) < 2 ^ 31
  end

  local FAILURE = {
    exit_code = is_nothing_or(is_exit), signal = is_nothing_or(is_exit),
    reason = is_text, stderr = is_text, conductor = is_text, time = is_text,
  }

  local function are_failures(value)
    if type(value) ~= "table" then return false end
    local count = 0
    for _, failure in pairs(value) do
      if type(failure) ~= "table" then return false end
      for name, is_right in pairs(FAILURE) do
        if not is_right(failure[name]) then return false end
      end
      if failure.stdout ~= nil and not is_text(failure.stdout) then return false end
      count = count + 1
    end
    return count == #value
  end

  local function is_remark(value)
    if type(value) ~= "table" or not is_text(value.by) then return false end
    return is_nothing_or(is_text)(value.reason) and is_nothing_or(is_text)(value.action)
      and is_nothing_or(is_time)(value.on)
  end

  return {
    owner = is_nothing_or(is_text), fence = is_nothing_or(is_text), session = is_nothing_or(is_number),
    claimed_on = is_nothing_or(is_time), not_before = is_nothing_or(is_time),
    trashed_on = is_nothing_or(is_time), created_on = is_nothing_or(is_time),
    first_claimed_on = is_nothing_or(is_time), remark = is_nothing_or(is_remark),
    attempts = is_count, postponed = is_count, ahead = is_flag, failures = are_failures,
  }
end

-- Made for the first record that has to be sound: most calls come to none.
local rules

local REMARK = { by = true, reason = true, action = true, on = true }

-- Has nothing in a value that can be read and not be written again: numbers beyond all numbers.
local function make_writable(value)
  for name, member in pairs(value) do
    if type(member) == "table" then
      make_writable(member)
    elseif type(member) == "number" and (member ~= member or math.abs(member) == math.huge) then
      value[name] = cjson.null
    end
  end
end

-- The record beside the job whose turn it is, once it has been read: its text, or that there is something else.
local beside

local function text_beside()
  beside = beside or { text_under(sidecar) }
  return beside[1], beside[2]
end

-- Returns what the text of a record says, sound or not; nothing, if it is no record of this version.
local function decoded(raw)
  if not raw or #raw > LARGEST_SIDE then return nil end
  local ok, side = pcall(cjson.decode, raw)
  return ok and type(side) == "table" and side.v == 1 and side or nil
end

-- Returns the place behind a string in a sound JSON text.
local function behind_string(text, at)
  repeat
    at = text:find('["\\]', at + 1)
    local is_escape = text:byte(at) == 92
    if is_escape then at = at + 1 end
  until not is_escape
  return at + 1
end

-- Returns the texts of the members of a sound JSON object, by their names.
local function texts_of_members(text)
  local texts, at = {}, text:find('"', 1, true)
  while at do
    local name_end = behind_string(text, at)
    local name = cjson.decode("[" .. text:sub(at, name_end - 1) .. "]")[1]
    local first, depth = text:find("[^%s:]", name_end), 0
    at = first
    repeat
      local byte = text:sub(at, at)
      if byte == "{" or byte == "[" then depth = depth + 1 end
      if byte == "}" or byte == "]" then depth = depth - 1 end
      at = byte == '"' and behind_string(text, at) or at + 1
    until depth == 0 and text:find("^%s*[,}]", at)
    texts[name] = text:sub(first, at - 1)
    at = text:find('"', at, true)
  end
  return texts
end

-- The members of a record that other versions may have written: their texts and their values. The codec would change
-- empty lists and long numbers.
local kept

-- Returns the record beside the job; false for one that is not ours to change, and its text.
local function read_side()
  kept = nil
  local raw, is_other = text_beside()
  if not raw and not is_other then return { v = 1 } end
  local side = decoded(raw)
  if not side then return false, raw and #raw <= LARGEST_SIDE and raw or "" end
  rules = rules or rules_of_side()
  for name, is_right in pairs(rules) do
    if side[name] ~= nil and not is_right(side[name]) then return false, raw end
  end
  make_writable(side)
  local has_unknown = false
  for name, value in pairs(side) do
    if not rules[name] then
      has_unknown = has_unknown or name ~= "v"
    elseif value == cjson.null then
      side[name] = nil
    end
  end
  for name in pairs(side.remark or {}) do
    has_unknown = has_unknown or not REMARK[name]
  end
  if has_unknown then
    kept = { texts = texts_of_members(raw), values = {} }
    for name, value in pairs(side) do kept.values[name] = value end
    -- Its list grows in place.
    kept.texts.failures = nil
  end
  return side, raw
end

-- Returns the text of a record, "" for one that is not ours.
local function text_of_side(side)
  if not side then return "" end
  if side.failures and #side.failures == 0 then side.failures = nil end
  if not kept then return cjson.encode(side) end
  local members = {}
  for name, value in pairs(side) do
    local text = value == kept.values[name] and kept.texts[name] or cjson.encode(value)
    table.insert(members, cjson.encode(name) .. ":" .. text)
  end
  return "{" .. table.concat(members, ",") .. "}"
end

-- Writes the record beside the job by its text; nothing is written over one that is not ours.
local function write_side(text, is_kept)
  if text == "" then return end
  if is_kept then
    redis.call("SET", sidecar, text)
  else
    redis.call("SET", sidecar, text, "PX", SIDE_LIFE)
  end
end

-- Gives the job to an owner, with the record that says so, and returns the text of that.
local function give_to(owner, side)
  local text = text_of_side(side)
  write_side(text)
  redis.call("SET", modified, now)
  -- The deciding write comes last: what is beside a job that nobody has says nothing yet.
  if life == "" then
    redis.call("SET", owned, owner)
  else
    redis.call("SET", owned, owner, "PX", life)
  end
  return text
end

-- Returns the texts with which a posting begins, by their names: its uuid, its name, and its priority if it has one.
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

-- Keeps what is to be remembered of a job that goes, with what was beside it. The job is gone by now: that it cannot be
-- kept is no reason to fail, and returned.
local function remember(side)
  if remembered == "" then return "" end
  if not side or #side > LARGEST_SIDE then side = "" end
  local kept = redis.pcall("XADD", past, "MAXLEN", "~", history, "*", "job", remembered, "side", side)
  return type(kept) == "table" and kept.err or ""
end

local events = {}

-- Notes what happened to the job. Names and owners need not be text, hence msgpack.
local function note(kind, posting, more)
  local texts, noted = texts_of(posting or ""), more or {}
  noted.event, noted.time, noted.field = kind, time, field
  noted.uuid, noted.name, noted.priority = texts.uuid, texts.name, texts.priority
  events[#events + 1] = noted
end

-- Tells who listens what happened. It is done by now, and nothing may fail it any more.
local function tell()
  if #events > 0 then redis.pcall("PUBLISH", channel, cmsgpack.pack(events)) end
end

-- Does a part for each job until it returns nothing, tells of it, and returns the answers.
local function for_each_job(part)
  local replies = {}
  for job = 1, jobs do
    turn_to(job)
    beside = nil
    local reply = alone(part)
    if not reply then break end
    replies[job] = reply
  end
  tell()
  return replies
end

-- Returns the fence of the claim that an owner holds, "" if it is not one of ours.
local function fence_of(owner)
  local side = decoded(text_beside())
  return side and side.owner == owner and is_text(side.fence) and side.fence or ""
end

-- Returns what keeps an owner from acting on a claim of a job that is there; nothing, if it is theirs.
local function refusal_of(owner, fence)
  local holder = holder_now()
  if not holder then return { "not-claimed" } end
  if holder ~= owner then return { "not-owner", holder } end
  if fence ~= "" and fence_of(owner) ~= fence then return { "changed" } end
end
