-- Posts jobs, each with the next number, or says that its field is taken; with an owner, claimed.
-- KEYS[1]  postings; [2] sequence; [3] fence; then for each job: owner, last_modified, side
-- ARGV[1]  channel
-- ARGV[2]  owner ("" for none); [3] its time to live in ms; [4] now (msgpack); [5] now (text)
-- ARGV[6…] for each job: field, posting up to the value of its sequence
-- Returns for each job {"ok", sequence, fence or ""} or {"exists"}.
local listings, channel, owner = KEYS[1], ARGV[1], ARGV[2]
permit({ "HSET", "HEXISTS" }, listings, "field", "value")
permit({ "INCRBY" }, KEYS[2], "1")
if KEYS[4] then
  permit({ "GET" }, KEYS[4])
  permit({ "DEL" }, KEYS[4], KEYS[5], KEYS[6])
  if owner ~= "" then
    permit({ "INCRBY" }, KEYS[3], "1")
    permit({ "SET" }, KEYS[4], owner)
  end
end

-- The shortest form in which msgpack has an unsigned integer.
local function packed(number)
  local function bytes(count)
    local text = ""
    for _ = 1, count do
      text = string.char(number % 256) .. text
      number = math.floor(number / 256)
    end
    return text
  end
  if number < 0x80 then return bytes(1) end
  if number < 0x100 then return "\204" .. bytes(1) end
  if number < 0x10000 then return "\205" .. bytes(2) end
  if number < 0x100000000 then return "\206" .. bytes(4) end
  return "\207" .. bytes(8)
end

local fresh, seen, count = {}, {}, 0
for at = 6, #ARGV, 2 do
  local field = ARGV[at]
  if not seen[field] and redis.call("HEXISTS", listings, field) == 0 then
    fresh[at], count = true, count + 1
  end
  seen[field] = true
end
local number = 0
local fence = 0
if count > 0 then
  number = redis.call("INCRBY", KEYS[2], count) - count
  if owner ~= "" then fence = redis.call("INCRBY", KEYS[3], count) - count end
end

local replies, events = {}, {}
for at = 6, #ARGV, 2 do
  if fresh[at] then
    number, fence = number + 1, fence + 1
    local key = 4 + (at - 6) / 2 * 3
    local owned, modified, side = KEYS[key], KEYS[key + 1], KEYS[key + 2]
    -- What a namesake left behind is not about this job.
    redis.call("DEL", owned, modified, side)
    if owner ~= "" then
      redis.call("SET", owned, owner, "PX", ARGV[3])
      redis.call("SET", modified, ARGV[4])
      write_side(side, {
        v = 1, owner = owner, claimed_on = ARGV[5], fence = string.format("%.0f", fence), attempts = 1,
      })
    end
    redis.call("HSET", listings, ARGV[at], ARGV[at + 1] .. packed(number))
    events[#events + 1] = event("posted", ARGV[5], ARGV[at], ARGV[at + 1], { sequence = number })
    if owner ~= "" then
      local claim = { owner = owner, fence = string.format("%.0f", fence), sequence = number }
      events[#events + 1] = event("claimed", ARGV[5], ARGV[at], ARGV[at + 1], claim)
    end
    replies[#replies + 1] = { "ok", string.format("%.0f", number), owner ~= "" and string.format("%.0f", fence) or "" }
  else
    replies[#replies + 1] = { "exists" }
  end
end
tell(channel, events)
return replies
