-- Posts jobs whose fields nobody else can have chosen, unclaimed, each with the next number.
-- foreseen: what the last of the numbers may be, and message: what tells of the jobs in that case; both "", if that is not
-- known. Of each job: field and posting up to the value of its sequence; if a last number is foreseen, with that value.
-- There are no more than 1000 jobs.
-- Returns {"all", first number} if the numbers were foreseen, and otherwise for each job {"ok", number}.
permit({ "HSET", "HEXISTS" }, listings, "field", "value")
permit({ "INCRBY" }, sequence, "1")

-- Without a hash this fails, before anything is counted.
redis.call("HEXISTS", listings, "")
local last, problem = count_up(sequence, jobs)
if problem then return problem end

if last == tonumber(foreseen) then
  redis.call("HSET", listings, unpack(ARGV, first))
  redis.pcall("PUBLISH", channel, message)
  return { { "all", digits(last - jobs + 1) } }
end

local number = last - jobs
return for_each_job(function()
  number = number + 1
  if foreseen ~= "" then
    -- Somebody else has posted since, and it is another number.
    local other = cmsgpack.pack(foreseen - last + number)
    posting = posting:sub(1, -#other - 1)
  end
  redis.call("HSET", listings, field, posting .. cmsgpack.pack(number))
  note("posted", posting, { sequence = number })
  return { "ok", digits(number) }
end)
