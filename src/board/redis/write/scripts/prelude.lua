-- Starts every script that changes jobs. `Call` (scripts.rs) puts the argument names before it, and `turn_to`, which loads
-- the arguments of one job. The names that several scripts have:
--   keys    listings, trash (hashes); sequence, fences (counters); of each job: owned, modified, sidecar
--   values  channel; now (msgpack), time (text) of the change; life, the time to live of a claim in ms, "" for none;
--           of each job: field
--           past (stream), history (its length); of each job: remembered, its history entry, "" for none
-- The sidecar of a job ("side") is JSON. One that is unreadable, or of an unknown version, stays as it is. All times are
-- text of one form, so they compare as text.

local SIDE_LIFE = 7 * 24 * 3600 * 1000
local LARGEST_SIDE = 256 * 1024

-- Before Redis 7, replicas may run the script again unless told to copy its effects; this script reads the clock.
if redis.replicate_commands then redis.replicate_commands() end

-- Fails before any change if the user lacks a right that the script may need. Redis before 7 cannot tell; a denied command
-- then fails when the script reaches it.
local function permit(commands, ...)
  if not redis.acl_check_cmd then return end
  for _, command in ipairs(commands) do
    if not redis.acl_check_cmd(command, ...) then
      error(redis.error_reply("NOPERM this user has no permissions to run the '" .. command:lower() .. "' command"))
    end
  end
end

local function digits(number) return string.format("%.0f", number) end

-- Increments a counter and returns it. Returns nil and an error, and changes nothing, if the key holds no counter or the
-- result reaches 2^53, where Lua's integers are no longer exact.
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

-- Runs the change of one job. An error becomes that job's result; an error that concerns the whole server ends the call.
local function alone(part)
  local is_done, answer = pcall(part)
  if is_done then return answer end
  local text = tostring(type(answer) == "table" and answer.err or answer)
  -- Before Redis 7, the text begins with a place in the script.
  local said = text:gsub("^@user_script: ?%d+: *%-?", "")
  if REFUSES_ALL[said:match("^%u+")] then
    error(redis.acl_check_cmd and redis.error_reply(said) or said, 0)
  end
  return { "failed", text }
end

-- Returns the text under a key, and whether the key holds another type; that must not stop the changes of other jobs.
local function text_under(key)
  local found = redis.pcall("GET", key)
  if type(found) == "table" then return nil, true end
  return found, false
end

-- Returns the owner, "" if unreadable, false if the job is unclaimed.
local function holder_now()
  local holder, is_other = text_under(owned)
  return is_other and "" or holder
end

local function is_text(value) return type(value) == "string" end

local function is_number(value) return type(value) == "number" and value >= 0 and value % 1 == 0 end

local function is_count(value) return is_number(value) and value < 2 ^ 32 end

local function is_flag(value) return type(value) == "boolean" end

-- Returns the type of each sidecar member: the same rules as `Sidecar::read`.
local function rules_of_side()
  local DAYS = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

  local function is_time(value)
    if not is_text(value) then return false end
    local date, of_day, rest = value:match("^(%d%d%d%d%-%d%d%-%d%d)T(%d%d:%d%d:%d%d)(.*)$")
    if not date or not (rest == "Z" or rest:match("^%.%d+Z$")) then return false end
    local year, month, day = tonumber(date:sub(1, 4)), tonumber(date:sub(6, 7)), tonumber(date:sub(9, 10))
    local is_leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
    if not DAYS[month] or day < 1 or day > DAYS[month] or (day == 29 and month == 2 and not is_leap) then
      return false
    end
    return of_day:sub(1, 2) < "24" and of_day:sub(4, 5) < "60" and of_day:sub(7, 8) < "60"
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

-- Built for the first sidecar: most calls read none.
local rules

local REMARK = { by = true, reason = true, action = true, on = true }

-- Replaces infinite and NaN numbers, which cjson reads but cannot write.
local function make_writable(value)
  for name, member in pairs(value) do
    if type(member) == "table" then
      make_writable(member)
    elseif type(member) == "number" and (member ~= member or math.abs(member) == math.huge) then
      value[name] = cjson.null
    end
  end
end

-- The sidecar of the current job, once read: its text, and whether the key holds another type.
local beside

local function text_beside()
  beside = beside or { text_under(sidecar) }
  return beside[1], beside[2]
end

-- Decodes a sidecar without checking its members; nil if it is no sidecar of this version.
local function decoded(raw)
  if not raw or #raw > LARGEST_SIDE then return nil end
  local ok, side = pcall(cjson.decode, raw)
  return ok and type(side) == "table" and side.v == 1 and side or nil
end

-- Returns the place after a string in valid JSON.
local function behind_string(text, at)
  repeat
    at = text:find('["\\]', at + 1)
    local is_escape = text:byte(at) == 92
    if is_escape then at = at + 1 end
  until not is_escape
  return at + 1
end

-- Returns the texts of the members of a valid JSON object, by their names.
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

-- The members of a sidecar with unknown ones, as text and as values: cjson would change empty lists and long numbers.
local kept

-- Returns the sidecar, empty if the job has none; false and its text if it is unreadable.
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
    -- This list grows in place.
    kept.texts.failures = nil
  end
  return side, raw
end

-- Returns the text of a sidecar, "" for an unreadable one.
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

-- Writes the sidecar; an empty text keeps an unreadable one.
local function write_side(text, is_kept)
  if text == "" then return end
  if is_kept then
    redis.call("SET", sidecar, text)
  else
    redis.call("SET", sidecar, text, "PX", SIDE_LIFE)
  end
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
  if not side or #side > LARGEST_SIDE then side = "" end
  local added = redis.pcall("XADD", past, "MAXLEN", "~", history, "*", "job", remembered, "side", side)
  return type(added) == "table" and added.err or ""
end

local events = {}

-- Records an event of the job. Names and owners need not be text, hence msgpack.
local function note(kind, posting, more)
  local texts, noted = texts_of(posting or ""), more or {}
  noted.event, noted.time, noted.field = kind, time, field
  noted.uuid, noted.name, noted.priority = texts.uuid, texts.name, texts.priority
  events[#events + 1] = noted
end

-- Publishes the events. The change is done, so errors are ignored.
local function tell()
  if #events > 0 then redis.pcall("PUBLISH", channel, cmsgpack.pack(events)) end
end

-- Runs a change for each job until it returns nil, publishes the events, and returns the results.
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

-- Returns the fence of this owner's claim, "" if the sidecar has none.
local function fence_of(owner)
  local side = decoded(text_beside())
  return side and side.owner == owner and is_text(side.fence) and side.fence or ""
end

-- Returns the refusal if this owner, or this fence, does not hold the claim.
local function refusal_of(owner, fence)
  local holder = holder_now()
  if not holder then return { "not-claimed" } end
  if holder ~= owner then return { "not-owner", holder } end
  if fence ~= "" and fence_of(owner) ~= fence then return { "changed" } end
end
