-- Posts jobs, each with the next number, or says that its field is taken; with an owner, claimed.
-- KEYS[1]  postings; [2] sequence; [3] fence; then for each job: owner, last_modified, side; none of
--          these, if they are to be unclaimed and nobody else can have chosen their fields
-- ARGV[1]  channel
-- ARGV[2]  owner ("" for none); [3] its time to live in ms; [4] now (msgpack); [5] now (text)
-- ARGV[6]  what the last of the numbers may be; [7] the message that tells of the jobs in that case;
--          "" and "", if that cannot be foreseen or there are keys beside
-- ARGV[8…] for each job: field, and its posting up to the value of its sequence; if a last number is
--          foreseen, with that value. There are no more than 1000 jobs.
-- Returns for each job {"ok", sequence in halves of 32 bits: high, low, fence or ""} or {"exists"};
-- instead of all these {"all", high, low} with the first number, if they were foreseen.
local listings, channel, owner, foreseen = KEYS[1], ARGV[1], ARGV[2], ARGV[6]
local has_beside = KEYS[4] ~= nil
permit({ "HSET", "HEXISTS" }, listings, "field", "value")
permit({ "INCRBY" }, KEYS[2], "1")
if has_beside then
  permit({ "GET" }, KEYS[4])
  permit({ "DEL" }, KEYS[4], KEYS[5], KEYS[6])
  if owner ~= "" then
    permit({ "TIME" })
    permit({ "INCRBY" }, KEYS[3], "1")
    permit({ "SET" }, KEYS[3], "1")
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

-- Returns the halves of the number that is further on, or back.
local function moved(high, low, by)
  low = low + by
  if low < 0 then return high - 1, low + HALF end
  if low >= HALF then return high + 1, low - HALF end
  return high, low
end

-- The shortest form in which msgpack has an unsigned integer.
local function packed(high, low)
  if high > 0 then return struct.pack(">BI4I4", 0xcf, high, low) end
  return cmsgpack.pack(low)
end

-- Words an answer with this number.
local function numbered(word, high, low)
  return { word, string.format("%.0f", high), string.format("%.0f", low) }
end

-- Without a hash this fails, before anything is counted.
redis.call("HEXISTS", listings, ARGV[8])
local taken, fences, count = {}, {}, (#ARGV - 7) / 2
if has_beside then
  local seen = {}
  for at = 8, #ARGV, 2 do
    local field = ARGV[at]
    if seen[field] or redis.call("HEXISTS", listings, field) == 1 then
      taken[at], count = true, count - 1
    end
    seen[field] = true
  end
end
local high, low, last = 0, 0, ""
if count > 0 then
  local problem
  last, problem = count_up(KEYS[2], count)
  if problem then return problem end
  high, low = halves(last)
  high, low = moved(high, low, -count)
end

if foreseen ~= "" and foreseen == last then
  redis.call("HSET", listings, unpack(ARGV, 8))
  redis.pcall("PUBLISH", channel, ARGV[7])
  return { numbered("all", moved(high, low, 1)) }
end

for at = 8, #ARGV, 2 do
  if owner ~= "" and not taken[at] then
    local fence, problem = next_fence(KEYS[3])
    if problem then return problem end
    fences[at] = fence
  end
end

local foreseen_high, foreseen_low = halves(foreseen)
local replies, events = {}, {}
for at = 8, #ARGV, 2 do
  if not taken[at] then
    high, low = moved(high, low, 1)
    local fence, posting = fences[at], ARGV[at + 1]
    if foreseen ~= "" then
      -- Somebody else has posted since, and it is another number.
      local other = packed(moved(foreseen_high, foreseen_low, -(#ARGV - 1 - at) / 2))
      posting = posting:sub(1, -#other - 1)
    end
    if has_beside then
      local key = 4 + (at - 8) / 2 * 3
      local owned, modified, side = KEYS[key], KEYS[key + 1], KEYS[key + 2]
      -- What a namesake left behind is not about this job.
      redis.call("DEL", owned, modified, side)
      if owner ~= "" then
        redis.call("SET", owned, owner, "PX", ARGV[3])
        redis.call("SET", modified, ARGV[4])
        write_side(side, text_of_side({
          v = 1, owner = owner, claimed_on = ARGV[5], fence = fence, attempts = 1,
        }))
      end
    end
    redis.call("HSET", listings, ARGV[at], posting .. packed(high, low))
    -- Rather no number than one that is rounded.
    local number = high * HALF + low
    if number >= 2 ^ 53 then number = nil end
    events[#events + 1] = event("posted", ARGV[5], ARGV[at], posting, { sequence = number })
    if owner ~= "" then
      local claim = { owner = owner, fence = fence, sequence = number }
      events[#events + 1] = event("claimed", ARGV[5], ARGV[at], posting, claim)
    end
    local reply = numbered("ok", high, low)
    reply[4] = fence or ""
    replies[#replies + 1] = reply
  else
    replies[#replies + 1] = { "exists" }
  end
end
tell(channel, events)
return replies
