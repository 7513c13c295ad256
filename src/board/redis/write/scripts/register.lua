-- Keeps the entry of a conductor, or removes it; that of another one of its name is left alone.
-- KEYS[1]  entry; [2] what it tells of itself
-- ARGV[1]  token of who asks; [2] what the entry is to say ("" to remove it); [3] its time to live in ms;
--     [4] what it tells of itself
-- Returns "entered", "kept", "removed", "gone" or "other".
local function put(key, text)
  -- What has not changed is not written, and nobody who watches is told of it.
  if redis.pcall("GET", key) == text then
    redis.call("PEXPIRE", key, ARGV[3])
  else
    redis.call("SET", key, text, "PX", ARGV[3])
  end
end
local present = redis.pcall("GET", KEYS[1])
if present then
  local is_read, entry = pcall(cjson.decode, present)
  if not is_read or type(entry) ~= "table" or entry.token ~= ARGV[1] then return "other" end
end
if ARGV[2] == "" then
  if not present then return "gone" end
  redis.call("DEL", KEYS[1], KEYS[2])
  return "removed"
end
put(KEYS[1], ARGV[2])
put(KEYS[2], ARGV[4])
return present and "kept" or "entered"
