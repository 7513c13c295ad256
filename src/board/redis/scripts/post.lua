-- Posts jobs, each with the next number, or says that its field is taken; with an owner, claimed.
-- KEYS[1]  postings; [2] sequence; [3] fence; then for each job: owner, last_modified, side
-- ARGV[1]  channel
-- ARGV[2]  owner ("" for none); [3] its time to live in ms; [4] now (msgpack); [5] now (text)
-- ARGV[6…] for each job: field, posting up to the value of its sequence
-- Returns for each job {"ok", sequence in halves of 32 bits: high, low, fence or ""} or {"exists"}.
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

local HALF = 2 ^ 32

-- Returns the halves of a number that is text.
local function halves(text)
  local high, low = 0, 0
  for digit in text:gmatch("%d") do
    low = low * 10 + tonumber(digit)
    high = high * 10 + math.floor(low / HALF)
    low = low % HALF
  end
  return high, low
end

local function bytes(number, count)
  local text = ""
  for _ = 1, count do
    text = string.char(number % 256) .. text
    number = math.floor(number / 256)
  end
  return text
end

-- The shortest form in which msgpack has an unsigned integer.
local function packed(high, low)
  if high > 0 then return "\207" .. bytes(high, 4) .. bytes(low, 4) end
  if low < 0x80 then return bytes(low, 1) end
  if low < 0x100 then return "\204" .. bytes(low, 1) end
  if low < 0x10000 then return "\205" .. bytes(low, 2) end
  return "\206" .. bytes(low, 4)
end

local fresh, fences, seen, count = {}, {}, {}, 0
for at = 6, #ARGV, 2 do
  local field = ARGV[at]
  if not seen[field] and redis.call("HEXISTS", listings, field) == 0 then
    fresh[at], count = true, count + 1
  end
  seen[field] = true
end
local high, low = 0, 0
if count > 0 then
  local last, problem = count_up(KEYS[2], count)
  if problem then return problem end
  high, low = halves(last)
  low = low - count
  if low < 0 then high, low = high - 1, low + HALF end
end
for at = 6, #ARGV, 2 do
  if owner ~= "" and fresh[at] then
    local fence, problem = count_up(KEYS[3], 1)
    if problem then return problem end
    fences[at] = fence
  end
end

local replies, events = {}, {}
for at = 6, #ARGV, 2 do
  if fresh[at] then
    low = low + 1
    if low == HALF then high, low = high + 1, 0 end
    local fence = fences[at]
    local key = 4 + (at - 6) / 2 * 3
    local owned, modified, side = KEYS[key], KEYS[key + 1], KEYS[key + 2]
    -- What a namesake left behind is not about this job.
    redis.call("DEL", owned, modified, side)
    if owner ~= "" then
      redis.call("SET", owned, owner, "PX", ARGV[3])
      redis.call("SET", modified, ARGV[4])
      write_side(side, {
        v = 1, owner = owner, claimed_on = ARGV[5], fence = fence, attempts = 1,
      })
    end
    redis.call("HSET", listings, ARGV[at], ARGV[at + 1] .. packed(high, low))
    -- Rather no number than one that is rounded.
    local number = high * HALF + low
    if number >= 2 ^ 53 then number = nil end
    events[#events + 1] = event("posted", ARGV[5], ARGV[at], ARGV[at + 1], { sequence = number })
    if owner ~= "" then
      local claim = { owner = owner, fence = fence, sequence = number }
      events[#events + 1] = event("claimed", ARGV[5], ARGV[at], ARGV[at + 1], claim)
    end
    replies[#replies + 1] = { "ok", string.format("%.0f", high), string.format("%.0f", low), fence or "" }
  else
    replies[#replies + 1] = { "exists" }
  end
end
tell(channel, events)
return replies
