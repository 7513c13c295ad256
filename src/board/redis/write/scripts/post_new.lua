-- Posts at most 1000 unclaimed jobs whose fields no other client can have chosen, each with the next number.
-- Keys       `listings`, `sequence`
-- Arguments  `channel`, `time`; `foreseen`, the probable number of the last job, and `message`, which announces the
--            jobs in that case, both "" if unknown; of each job: `field`; `posting` up to its number, and with it if it
--            is foreseen
-- Replies    all (first number), once, if the numbers were foreseen; else for each job: ok (number), failed
require_rights({ "HSET", "HEXISTS" }, listings, "field", "value")
require_rights({ "INCRBY" }, sequence, "1")

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
    -- Another client has posted since, so the number differs.
    local other = cmsgpack.pack(foreseen - last + number)
    posting = posting:sub(1, -#other - 1)
  end
  redis.call("HSET", listings, field, posting .. cmsgpack.pack(number))
  emit("posted", posting, { sequence = number })
  return { "ok", digits(number) }
end)
