-- Begins every script. The record beside a job ("side") is JSON; one of a version that is not known
-- here is left as it is. All times are text of one form, so that they compare as text.

local SIDE_LIFE = 7 * 24 * 3600 * 1000

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

-- Counts up, and returns where a counter is now, as text: Lua's own numbers are exact only below 2^53.
-- Where there is no count it changes nothing, and returns nothing and an error.
local function count_up(key, by)
  local now = redis.pcall("INCRBY", key, by)
  if type(now) == "table" then
    local is_no_count = now.err:find("WRONGTYPE") or now.err:find("not an integer") or now.err:find("overflow")
    return nil, is_no_count and redis.error_reply("NOCOUNT " .. key) or now
  end
  if now < by then
    redis.call("INCRBY", key, -by)
    return nil, redis.error_reply("NOCOUNT " .. key)
  end
  if now >= 2 ^ 53 then return redis.call("GET", key) end
  return string.format("%.0f", now)
end

-- Returns the text under a key, and whether there is something else instead, which somebody put
-- there by hand: it must not stop what is done to other jobs.
local function text_under(key)
  local found = redis.pcall("GET", key)
  if type(found) == "table" then return nil, true end
  return found, false
end

-- Returns the owner of a job, "" for one that cannot be read; nothing, if nobody holds it.
local function owner_under(key)
  local owner, is_other = text_under(key)
  return is_other and "" or owner
end

-- Returns the record beside a job; false for one that is not ours to change.
local function read_side(key)
  local raw, is_other = text_under(key)
  if is_other then return false end
  if not raw then return { v = 1 } end
  local ok, side = pcall(cjson.decode, raw)
  if not ok or type(side) ~= "table" or side.v ~= 1 then return false end
  for name, value in pairs(side) do
    if value == cjson.null then side[name] = nil end
  end
  return side
end

-- Writes the record beside a job, and returns it as it is written, "" for one that is not ours.
local function write_side(key, side, is_kept)
  if not side then return "" end
  if side.failures and #side.failures == 0 then side.failures = nil end
  local text = cjson.encode(side)
  if is_kept then
    redis.call("SET", key, text)
  else
    redis.call("SET", key, text, "PX", SIDE_LIFE)
  end
  return text
end

-- Tells who listens what happened. It is done by now, and nothing may fail it any more.
local function tell(channel, events)
  if #events > 0 then redis.pcall("PUBLISH", channel, cmsgpack.pack(events)) end
end

local PAST = { abandon = "abandoned", consume = "consumed", trash = "trashed" }

-- Returns the first texts of a posting by their names, for as long as it begins with texts.
local function texts_of(posting)
  local texts, at = {}, 2
  local count = posting:byte(1) or 0
  if count < 0x80 or count > 0x8f then return texts end
  local function text()
    local head = posting:byte(at) or 0
    local length, skip
    if head >= 0xa0 and head <= 0xbf then
      length, skip = head - 0xa0, 1
    elseif head == 0xd9 then
      length, skip = posting:byte(at + 1) or 0, 2
    else
      return nil
    end
    local found = posting:sub(at + skip, at + skip + length - 1)
    at = at + skip + length
    return found
  end
  for _ = 1, count - 0x80 do
    local name = text()
    local value = name and text()
    if not value then break end
    texts[name] = value
  end
  return texts
end

-- Words an event for those who listen. Names and owners need not be text, hence msgpack.
local function event(kind, time, field, posting, more)
  local texts = texts_of(posting or "")
  more = more or {}
  more.event, more.time, more.field = kind, time, field
  more.uuid, more.name, more.priority = texts.uuid, texts.name, texts.priority
  return more
end

-- Returns the fence of the claim that an owner holds, "" if it is not one of ours.
local function fence_of(beside, owner)
  local side = read_side(beside)
  return side and side.owner == owner and side.fence or ""
end

-- Returns what keeps an owner from acting on a claim; nothing, if it is theirs.
local function holds(listings, field, owned, beside, owner, fence)
  if redis.call("HEXISTS", listings, field) == 0 then return { "no-such-job" } end
  local holder = owner_under(owned)
  if not holder then return { "not-claimed" } end
  if holder ~= owner then return { "not-owner", holder } end
  if fence ~= "" and fence_of(beside, owner) ~= fence then return { "changed" } end
end
