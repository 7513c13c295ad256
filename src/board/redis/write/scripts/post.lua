-- Posts jobs, each with the next number. A claim counts an attempt.
-- Keys       `listings`, `sequence`, `fences`; of each job: `owned`, `modified`, `sidecar`
-- Arguments  `channel`, `time`, `now`, `life`, `owner` ("" to claim none); of each job: `field`; `posting` up to its
--            number
-- Replies    for each job: ok (number, fence or ""), exists, failed
require_posting_rights()

local numbers, count = {}, 0
for job = 1, jobs do
  turn_to(job)
  if not numbers[field] and redis.call("HEXISTS", listings, field) == 0 then
    count = count + 1
    numbers[field] = count
  end
end

local last, problem = 0, nil
if count > 0 then last, problem = count_up(sequence, count) end
if problem then return problem end
for name, place in pairs(numbers) do numbers[name] = last - count + place end

return post_numbered(numbers, count, function()
  return { v = 1, attempts = 1, first_claimed_on = time }
end, function(number)
  local numbered = posting .. cmsgpack.pack(number)
  redis.call("HSET", listings, field, numbered)
  return numbered, "posted"
end)
