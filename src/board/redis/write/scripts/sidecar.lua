-- Reads and writes the sidecar of a job ("side"), by the rules of `Sidecar::read`. It is JSON. One that is unreadable,
-- or of an unknown version, stays as it is.
-- `sidecar` is the key of the current job.

local SIDE_LIFE = 7 * 24 * 3600 * 1000

-- Returns the text under a key, and whether the key holds another type; that must not stop the changes of other jobs.
local function text_under(key)
  local found = redis.pcall("GET", key)
  if type(found) == "table" then return nil, true end
  return found, false
end

local function is_text(value) return type(value) == "string" end

-- cjson writes greater numbers with an exponent.
local function is_number(value)
  return type(value) == "number" and value >= 0 and value % 1 == 0 and value < 1e14
end

local function is_count(value) return is_number(value) and value < 2 ^ 32 end

local function is_flag(value) return type(value) == "boolean" end

-- Returns the type of each sidecar member.
local function rules_of_side()
  local DAYS = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

  local function is_time(value)
    if not is_text(value) then return false end
    local date, of_day, rest = value:match("^(%d%d%d%d%-%d%d%-%d%d)T(%d%d:%d%d:%d%d)(.*)$")
    if not date or not (rest == "Z" or #rest <= #".123456789Z" and rest:match("^%.%d+Z$")) then return false end
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
    reason = is_text, stderr = is_text, conductor = is_text, time = is_time,
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
local stored

local function stored_text()
  stored = stored or { text_under(sidecar) }
  return stored[1], stored[2]
end

-- Decodes a sidecar without checking its members; nil if it is no sidecar of this version.
local function decoded(raw)
  if not raw or #raw > MAX_SIDE then return nil end
  local ok, side = pcall(cjson.decode, raw)
  return ok and type(side) == "table" and side.v == 1 and side or nil
end

-- Returns the place after a string in valid JSON.
local function after_string(text, at)
  repeat
    at = text:find('["\\]', at + 1)
    local is_escape = text:byte(at) == 92
    if is_escape then at = at + 1 end
  until not is_escape
  return at + 1
end

-- Returns the texts of the members of a valid JSON object, by their names. cjson cannot do this: its values
-- show neither whether an empty table was a list nor all digits of a long number.
local function texts_of_members(text)
  local texts, at = {}, text:find('"', 1, true)
  while at do
    local name_end = after_string(text, at)
    local name = cjson.decode("[" .. text:sub(at, name_end - 1) .. "]")[1]
    local first, depth = text:find("[^%s:]", name_end), 0
    at = first
    repeat
      local byte = text:sub(at, at)
      if byte == "{" or byte == "[" then depth = depth + 1 end
      if byte == "}" or byte == "]" then depth = depth - 1 end
      at = byte == '"' and after_string(text, at) or at + 1
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
  local raw, is_other = stored_text()
  if not raw and not is_other then return { v = 1 } end
  local side = decoded(raw)
  if not side then return false, raw and #raw <= MAX_SIDE and raw or "" end
  rules = rules or rules_of_side()
  for name, is_right in pairs(rules) do
    if side[name] ~= nil and not is_right(side[name]) then return false, raw end
  end
  -- cjson reads an empty object like an empty list.
  if side.failures and #side.failures == 0 and texts_of_members(raw).failures:sub(1, 1) == "{" then
    return false, raw
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
