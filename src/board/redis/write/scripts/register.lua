-- Renews the entry of a conductor, or removes it. An entry of another process with the same name stays.
-- Keys       `entry`; `copy` of the entry, kept while claims may last; `status`, kept as long
-- Arguments  `token` of the process; `text` of the entry, "" to remove it; `entry_life` in ms; `report`, the text of
--            the status; `copy_life` in ms, also of the status
-- Replies    entered, kept, removed, gone or other
for _, key in ipairs({ entry, copy, status }) do
  require_rights({ "GET" }, key)
  if text == "" then
    require_rights({ "DEL" }, key)
  else
    require_rights({ "SET", "PEXPIRE" }, key, "1")
  end
end

local function put(key, value, life)
  -- An unchanged value is not written again, so that subscribers are not notified.
  if redis.pcall("GET", key) == value then
    redis.call("PEXPIRE", key, life)
  else
    redis.call("SET", key, value, "PX", life)
  end
end

local function is_ours(stored)
  local is_read, decoded = pcall(cjson.decode, stored)
  return is_read and type(decoded) == "table" and decoded.token == token
end

local present = redis.pcall("GET", entry)
if present and not is_ours(present) then return "other" end
if text == "" then
  if is_ours(redis.pcall("GET", copy)) then redis.call("DEL", copy, status) end
  if not present then return "gone" end
  redis.call("DEL", entry, status)
  return "removed"
end
put(entry, text, entry_life)
put(copy, text, copy_life)
put(status, report, copy_life)
return present and "kept" or "entered"
