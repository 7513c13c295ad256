-- Renews the entry of a conductor, or removes it. An entry of another process with the same name stays.
-- KEYS[1]  entry; [2] copy of the entry, kept while claims may last; [3] status, kept as long
-- ARGV[1]  token of the process; [2] the entry ("" to remove it); [3] its time to live in ms;
--     [4] the status; [5] time to live of KEYS[2] and KEYS[3] in ms
-- Returns "entered", "kept", "removed", "gone" or "other".
local function put(key, text, life)
  -- An unchanged value is not written again, so that subscribers are not notified.
  if redis.pcall("GET", key) == text then
    redis.call("PEXPIRE", key, life)
  else
    redis.call("SET", key, text, "PX", life)
  end
end
local function is_ours(text)
  local is_read, entry = pcall(cjson.decode, text)
  return is_read and type(entry) == "table" and entry.token == ARGV[1]
end
local present = redis.pcall("GET", KEYS[1])
if present and not is_ours(present) then return "other" end
if ARGV[2] == "" then
  if is_ours(redis.pcall("GET", KEYS[2])) then redis.call("DEL", KEYS[2], KEYS[3]) end
  if not present then return "gone" end
  redis.call("DEL", KEYS[1], KEYS[3])
  return "removed"
end
put(KEYS[1], ARGV[2], ARGV[3])
put(KEYS[2], ARGV[2], ARGV[5])
put(KEYS[3], ARGV[4], ARGV[5])
return present and "kept" or "entered"
