-- Returns whether this user may write the history: 1 or 0, and 1 on Redis before 7, which cannot tell. Runs without the
-- prelude.
-- Arguments  the stream of the history
if not redis.acl_check_cmd then return 1 end
return redis.acl_check_cmd("XADD", ARGV[1], "MAXLEN", "~", "1", "*", "job", "") and 1 or 0
