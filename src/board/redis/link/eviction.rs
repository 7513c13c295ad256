//! Whether a server removes keys when it is full: one that removes a claim ends it.

use redis::Value;

pub(crate) fn warning(info: &Value) -> Option<String> {
    let info: String = redis::from_redis_value_ref(info).ok()?;
    let fact = |name: &str| {
        let mut lines = info.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    let policy = fact("maxmemory_policy")?.trim();
    let is_limited = fact("maxmemory")?.trim() != "0";
    (is_limited && policy != "noeviction").then(|| {
        format!(
            "the server removes keys when it is full (maxmemory-policy {policy}): a claim that is \
             removed has ended, and two may perform its job; a board needs `maxmemory-policy \
             noeviction`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_may_remove_keys_is_told_from_one_that_does_not() {
        for (limit, policy, is_wrong) in [
            (0, "allkeys-lru", false),
            (1, "noeviction", false),
            (1, "allkeys-lru", true),
            (1, "volatile-ttl", true),
        ] {
            let info = format!(
                "# Memory\r\nmaxmemory:{limit}\r\nmaxmemory_human:1B\r\nmaxmemory_policy:{policy}\r\n"
            );
            let told = warning(&Value::BulkString(info.into_bytes()));
            assert_eq!(told.is_some(), is_wrong, "{told:?}");
        }
        assert_eq!(warning(&Value::Nil), None);
    }
}
