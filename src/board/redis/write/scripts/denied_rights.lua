-- Returns the commands that this user may not run on their keys. Runs without the prelude, and needs Redis 7.
-- Arguments  for each command: its words, with @ for the key; the key
-- Replies    for each denied command: its place, from 0; the server's message, which shows whether the command or the
--            key is denied
-- Denied commands change nothing.
local denied = {}
for at = 1, #ARGV, 2 do
  local words = {}
  for word in string.gmatch(ARGV[at], "%S+") do words[#words + 1] = word end
  if words[2] == "@" then words[2] = ARGV[at + 1] end
  if not redis.acl_check_cmd(unpack(words)) then
    local reply = redis.pcall(unpack(words))
    denied[#denied + 1] = (at - 1) / 2
    denied[#denied + 1] = type(reply) == "table" and reply.err or ""
  end
end
return denied
