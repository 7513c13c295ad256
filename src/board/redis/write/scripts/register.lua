-- Keeps the entry of a conductor, or removes it; that of another one of its name is left alone.
-- KEYS[1]  entry
-- ARGV[1]  token of who asks; [2] what the entry is to say ("" to remove it); [3] its time to live in ms
-- Returns "entered", "kept", "removed", "gone" or "other".
local present = redis.pcall("GET", KEYS[1])
if not present then
  if ARGV[2] == "" then return "gone" end
  redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
  return "entered"
end
local is_read, entry = pcall(cjson.decode, present)
if not is_read or type(entry) ~= "table" or entry.token ~= ARGV[1] then return "other" end
if ARGV[2] == "" then
  redis.call("DEL", KEYS[1])
  return "removed"
end
redis.call("PEXPIRE", KEYS[1], ARGV[3])
if present ~= ARGV[2] then redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3]) end
return "kept"
